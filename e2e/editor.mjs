// The policy editor in a real browser: by keyboard, both views in step while writing, tried before it is
// saved; and the same page without any script.

/** Drives the editor of the policy at `path` (`/w/…/policies/…`), whose server has `tool`. */
export async function driveEditor({ browser, context, page, look, must, base, path, tool }) {
  const name = 'editor';
  const part = (which) => page.locator(`[data-part=${which}]`);
  const written = async () => JSON.parse(await page.inputValue('#document'));
  const saw = (what) => page.waitForFunction(
    (words) => document.querySelector('main').innerText.includes(words), what, { timeout: 10_000 });
  /** A button by its value, reached and pressed by keyboard alone. */
  const press = async (value) => {
    const button = page.locator(`form[data-editor] button[value=${JSON.stringify(value)}]`).first();
    await button.evaluate((one) => one.closest('details')?.setAttribute('open', ''));
    await button.focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => !document.querySelector('form[data-editor][aria-busy]'));
  };

  await page.goto(`${base}${path}/edit`);
  const saved = await page.inputValue('#document');
  const first = Number(await page.locator('input[name=version]').inputValue());
  await press(`fate:custom:${tool}`);
  await saw(`Rules of ${tool}`);
  const focused = await page.evaluate(() => document.activeElement?.value);
  must(focused === `fate:custom:${tool}`, name, `the focus went to ${focused}`);

  // Fields come from the schema; operators follow their type without a reload.
  await press('new:require');
  await page.locator('#c0_path').waitFor();
  const options = (id) => page.locator(`#${id} option`).evaluateAll((all) => all.map((one) => one.value));
  must((await options('c0_path')).includes('args.code'), name, 'does not offer the arguments of the schema');
  await page.selectOption('#c0_path', 'call.hour_utc');
  await page.waitForFunction(() => document.querySelector('#c0_op option[value=lte]'));
  must(!(await options('c0_op')).includes('regex'), name, 'offers a text operator for a number');
  await page.selectOption('#c0_path', 'args.code');
  await page.waitForFunction(() => document.querySelector('#c0_op option[value=regex]'));
  must(!(await options('c0_op')).includes('lte'), name, 'offers a number operator for a text');
  await page.selectOption('#c0_op', 'length_lte');
  await page.waitForFunction(() => document.querySelector('#c0_op').value === 'length_lte'
    && !document.querySelector('form[data-editor][aria-busy]'));
  await page.fill('#c0_value', 'many');
  await press('put');
  await page.locator('#c0_value-error').waitFor();
  await look('policy-edit-rule');
  await page.fill('#c0_value', '200');
  await press('put');
  await page.waitForFunction(() => document.querySelector('#document').value.includes('length_lte'));
  const rule = (await written()).tools[tool].require[0];
  must(JSON.stringify(rule) === '{"conditions":[{"path":"args.code","op":"length_lte","value":200}]}', name, `wrote ${JSON.stringify(rule)}`);
  must((await part('words').innerText()).includes(`/tools/${tool}/require/0`), name, 'does not say the rule in words');

  // Written by hand: checked while typing, and the builder follows.
  const text = await page.inputValue('#document');
  await page.fill('#document', text.replace('"length_lte"', '"length_lt"'));
  await saw('Did you mean length_lte?');
  must(/Line \d+, column \d+/.test(await part('words').innerText()), name, 'does not say where the problem is');
  await page.fill('#document', text.replace('200', '300'));
  await saw('The document is valid');
  await page.waitForFunction(() => document.querySelector('[data-part=builder]').innerText.includes('300'));
  must((await page.evaluate(() => document.activeElement?.id)) === 'document', name, 'takes the focus away while writing');

  // Tried before it is saved: by the fields of the schema, and by policy tests.
  await page.fill('[id="a.0"]', 'print(1)');
  await press('call');
  await saw('It would be forwarded');
  await page.fill('[id="a.0"]', 'x'.repeat(301));
  await press('call');
  await saw('It would be refused.');
  await page.locator('#cases').evaluate((one) => one.closest('details').setAttribute('open', ''));
  await page.fill('#cases', JSON.stringify({ cases: [{ tool, arguments: { code: 'x' }, expect: 'allow' }, { tool, arguments: {}, expect: 'allow' }] }));
  await press('tests');
  await saw('1 passed, 1 failed');
  await look('policy-edit-tried');
  await page.fill('#document', text);
  await saw('The document is valid');
  await page.fill('#note', 'short programs only');
  await page.locator('button[value=save]').focus();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === path);
  await saw(`Saved version ${first + 1}`);

  // Versions: the change, what it would have done, and back.
  await page.goto(`${base}${path}/versions/${first + 1}?compare=outcomes`);
  await look('policy-version');
  await page.goto(`${base}${path}/try`);
  await look('policy-try');
  await page.goto(`${base}${path}/versions/${first}`);
  await page.getByRole('button', { name: 'Restore this version' }).click();
  await page.waitForURL((url) => !url.pathname.includes('/versions/'));
  await page.goto(`${base}${path}/edit`);
  must(await page.inputValue('#document') === saved, name, 'the restored version is not the first');

  // Without script the same buttons send the form.
  const plain = await browser.newContext({ javaScriptEnabled: false });
  await plain.addCookies(await context.cookies());
  const still = await plain.newPage();
  await still.goto(`${base}${path}/edit`);
  await still.locator(`button[value="fate:hide:${tool}"]`).click();
  must(JSON.parse(await still.inputValue('#document')).hide?.includes(tool), name, 'without script nothing is hidden');
  await still.locator('button[value=undo]').click();
  must(await still.inputValue('#document') === saved, name, 'without script there is no way back');
  await plain.close();
}

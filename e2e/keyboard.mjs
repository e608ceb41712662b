// The main path by keyboard alone: Tab, Shift+Tab, Enter, Space and letters. What is in focus is always seen.

/** Drives it as a newcomer. */
export async function byKeyboard({ base, visitor, must, mark, password }) {
  const { context, page } = await visitor();
  const press = (key) => page.keyboard.press(key);
  const focused = () => page.evaluate(() => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    const style = getComputedStyle(one);
    const labels = [...(one.labels ?? [])].map((label) => label.innerText).join(' ');
    const box = one.getBoundingClientRect();
    return {
      name: (one.getAttribute('aria-label') ?? (labels || one.innerText || one.value || '')).trim(),
      kind: one.tagName.toLowerCase(),
      seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
      inView: box.bottom > 0 && box.top < innerHeight,
    };
  });
  /** Goes on with Tab until something of this name is in focus. */
  const to = async (name, kind) => {
    for (let steps = 0; steps < 150; steps++) {
      await press('Tab');
      const here = await focused();
      if (here === null) continue;
      must(here.seen, `the focus on “${here.name}” (${here.kind}) is not seen`);
      must(here.inView, `the focus on “${here.name}” is out of view`);
      if (name.test(here.name) && (!kind || kind === here.kind)) return;
    }
    throw new Error(`Tab does not come to ${name} on ${page.url()}`);
  };
  const type = (text) => page.keyboard.type(text);
  const enter = async (until) => {
    await Promise.all([page.waitForURL(until), press('Enter')]);
    await page.waitForLoadState();
  };

  mark('by keyboard: skip link');
  await page.goto(`${base}/`);
  await to(/^Skip to content$/);
  await press('Enter');
  must(page.url().endsWith('#main'), 'the skip link does not lead to the content');

  mark('by keyboard: sign up');
  await page.goto(`${base}/signup`);
  await to(/e-?mail/i, 'input');
  await type('kim@example.com');
  await to(/password/i, 'input');
  await type(password);
  await enter(/\/workspaces\/new/);

  mark('by keyboard: a workspace');
  await to(/name/i, 'input');
  await type('Keys');
  await enter(/\/(servers\/new|w\/)/);

  mark('by keyboard: the example server');
  if (!page.url().includes('/servers/new')) await page.goto(`${base}/w/keys/servers/new`);
  await to(/^Connect the example$/, 'button');
  await enter(/\/servers\/[0-9a-f-]{36}/);

  mark('by keyboard: a rule');
  await to(/^Rate-limit this tool$/, 'a');
  await enter(/\/apply/);
  await to(/^Apply/, 'button');
  await enter((url) => !url.pathname.endsWith('/apply'));

  mark('by keyboard: a grant');
  if (!page.url().includes('/grants/new')) {
    const server = page.url().match(/\/servers\/[0-9a-f-]{36}/);
    if (!server) await page.goto(`${base}/w/keys/servers`);
    if (!server) { await to(/example/i, 'a'); await enter(/\/servers\/[0-9a-f-]{36}/); }
    await to(/^Create (a )?grant/, 'a');
    await enter(/\/grants\/new/);
  }
  await to(/label/i, 'input');
  await type('typed agent');
  await press('Enter');
  await page.locator('#token-once').waitFor();

  mark('by keyboard: a call');
  await to(/send|try|call/i, 'button');
  await press('Space');
  await page.locator('.try-log').getByText(/\S/).first().waitFor();

  mark('by keyboard: search');
  await page.goto(`${base}/w/keys/logs`);
  await press('/');
  const here = await focused();
  must(here?.kind === 'input' && /search/i.test(here.name), '`/` does not go to the search field');
  await page.keyboard.type('typed');
  await page.locator('.palette a').first().waitFor();
  await press('ArrowDown');
  must(/typed/i.test((await focused())?.name ?? ''), 'an arrow does not go to the first place');
  await press('Enter');
  await page.waitForURL(/\/w\/keys\/(grants|servers|policies)\//);
  await context.close();
}

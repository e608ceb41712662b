// Drives the whole path in a real browser, as a newcomer would: catalogue, button, sign-up, workspace,
// server, rule, grant, calls, log. On every page it looks for sideways scrolling on a phone, script
// errors and accessibility faults, and saves screenshots.
// BASE, UPSTREAM (an MCP server with `executePython`), CHROMIUM, SHOTS. Prints one JSON object a line.
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { runConfigurations } from './configs.mjs';
import { driveEditor } from './editor.mjs';
import { drivePasskeys } from './passkeys.mjs';

const { BASE, UPSTREAM, CHROMIUM, SHOTS } = process.env;
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 900 };
const say = (line) => console.log(JSON.stringify(line));
const faults = [];
const fail = (page, what) => {
  faults.push(`${page}: ${what}`);
  say({ step: 'fault', page, what });
};
const must = (holds, page, what) => holds || fail(page, what);

mkdirSync(SHOTS, { recursive: true });
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
    '--disable-background-networking', '--disable-component-update'],
});
// axe is put into the page by the test, which the pages' own policy would refuse.
const context = await browser.newContext({ viewport: DESK, bypassCSP: true, reducedMotion: 'reduce' });
const page = await context.newPage();
let at = 'start';
process.on('uncaughtExceptionMonitor', () => say({ step: 'lost', after: at, url: page.url() }));
page.on('pageerror', (error) => fail(at, `script error: ${error.message}`));
page.on('console', (message) => {
  // An answer that is meant to be an error is one for the console too.
  const meant = /responded with a status of (422|404)/.test(message.text());
  if (message.type() === 'error' && !meant) fail(at, `console: ${message.text()}`);
});

/** Looks at the page that is open: both widths, both themes. `pages.mjs` has every page's axe. */
async function look(name, withAxe = true) {
  at = name;
  for (const [width, view] of [['390', PHONE], ['1280', DESK]]) {
    await page.setViewportSize(view);
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
    must(wide <= 0, name, `scrolls sideways by ${wide} px at ${width} px`);
    for (const what of await cutOff()) fail(name, `runs out of its box at ${width} px: ${what}`);
    // A window as high as the page: what sticks to an edge then stands where it belongs.
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.setViewportSize({ ...view, height: Math.max(view.height, Math.min(height, 8_000)) });
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.screenshot({ path: join(SHOTS, `${name}-${width}-${scheme}.png`) });
    }
    await page.setViewportSize(view);
  }
  if (withAxe) await page.addScriptTag({ path: axe });
  for (const scheme of withAxe ? ['light', 'dark'] : []) {
    await page.emulateMedia({ colorScheme: scheme });
    const found = await page.evaluate(() => window.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
    }));
    for (const violation of found.violations) {
      const where = violation.nodes.slice(0, 2).map((node) => node.target.join(' ')).join('; ');
      fail(name, `axe (${scheme}) ${violation.id}: ${violation.help} at ${where}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  must((await page.title()).length > 0, name, 'has no title');
  say({ step: 'look', page: name, url: new URL(page.url()).pathname });
}

/** Every element that is cut off by its box without a way to see the rest. */
const cutOff = () => page.evaluate(() => {
  const boxed = (one) => one !== null && one !== document.body
    && (getComputedStyle(one).overflowX !== 'visible' || boxed(one.parentElement));
  return [...document.querySelectorAll('main *')]
    .filter((one) => one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && !one.closest('svg') && !boxed(one))
    .slice(0, 3).map((one) => `${one.tagName.toLowerCase()}.${one.className}: ${one.textContent.trim().slice(0, 40)}`);
});

const button = (name) => page.getByRole('button', { name });
const link = (name) => page.getByRole('link', { name });
const text = async () => (await page.locator('main').innerText()).replace(/\s+/g, ' ');

/** The Try it panel: presses Send and waits for the last answer. */
async function tryIt(name, times) {
  at = name;
  const form = page.locator('form[data-proxy]');
  await form.locator('input[name=times], select[name=times]').first().evaluate((field, value) => {
    field.value = value;
    field.dispatchEvent(new Event('change', { bubbles: true }));
  }, String(times));
  await form.getByRole('button', { name: /send|try|call/i }).first().click();
  const log = form.locator('.try-log');
  await log.getByText('[POLICY DENIED]').first().waitFor({ timeout: 30_000 });
  return log.innerText();
}

// 1. A stranger finds the tool and reads its page.
await page.goto(`${BASE}/`);
await look('home');
// Typed with a slip, results come without a click and the address follows.
await page.goto(`${BASE}/tools`);
await page.locator('form[data-live] input[name=q]').pressSequentially('exceutePyt');
await page.locator('#results').getByRole('link', { name: 'executePython' }).first().waitFor({ timeout: 30_000 });
await page.waitForURL(/q=exceutePyt/);
await page.goto(`${BASE}/tools?q=executePython`);
await look('search');
await page.locator('main').getByRole('link', { name: 'executePython' }).first().click();
await look('tool');
await page.goto(`${BASE}/tools/leghis-smart-e2b`);
await look('catalogue-server');
await page.goBack();
const toolPage = page.url();
const read = await text();
must(read.includes('Execute') && read.includes('High'), 'tool', 'does not tell category and severity');
must(read.includes('10'), 'tool', 'does not show the rule');

// 2. The button's choice survives signing up.
await link(/Rate-limit this tool/).first().click();
await page.waitForURL(/\/signup/);
await look('signup');
await page.fill('#email', 'not-an-address');
await page.fill('#password', 'short');
await page.locator('main form, form').filter({ has: page.locator('#password') }).first()
  .evaluate((form) => { form.noValidate = true; });
await page.locator('form:has(#password) button[type=submit]').first().click();
must(await page.inputValue('#email') === 'not-an-address', 'signup', 'forgets what was typed');
must(await page.locator('#password-error').count() === 1, 'signup', 'does not say what is wrong with the password');
await look('signup-faults');
const [email, password] = [`ann-${Date.now()}@example.com`, 'a long enough password'];
await page.fill('#email', email);
await page.fill('#password', password);
await page.locator('form:has(#password) button[type=submit]').first().click();
await page.waitForURL(/\/workspaces\/new/);
await look('workspace');
await page.fill('#name', 'Acme <b>& Söhne</b>');
await page.locator('form:has(#name) button[type=submit]').first().click();

// 3. The server is connected; first an address that does not work, in words.
await page.waitForURL(/\/servers\/new/);
must((await text()).includes('executePython') || page.url().includes('executePython'), 'connect', 'the choice is lost');
await look('connect');
await page.fill('#upstream_url', 'file:///etc/hosts');
await page.locator('form:has(#upstream_url)').first().evaluate((form) => { form.noValidate = true; });
await page.locator('form:has(#upstream_url) button[type=submit]').first().click();
must(await page.locator('#upstream_url-error').count() === 1, 'connect', 'does not say what is wrong with the address');
must(await page.inputValue('#upstream_url') === 'file:///etc/hosts', 'connect', 'forgets the address');
await look('connect-faults');
await page.fill('#upstream_url', UPSTREAM);
await page.locator('form:has(#upstream_url) button[type=submit]').first().click();

// 4. The rule is shown before it is saved, then applied.
await page.waitForURL(/\/apply/);
await look('apply');
must((await text()).includes('10'), 'apply', 'does not show the limit');
await button(/^Apply/).first().click();
await page.waitForURL((url) => !url.pathname.endsWith('/apply'));

// 5. A grant, shown once, with configurations.
if (!page.url().includes('/grants/new')) {
  const server = page.url().match(/\/w\/[^/]+\/servers\/[0-9a-f-]{36}/)?.[0]
    ?? new URL(page.url()).pathname;
  await page.goto(`${BASE}${server.startsWith('/') ? server : new URL(server).pathname}/grants/new`);
}
await look('grant-new');
const workspace = page.url().match(/\/w\/[^/]+/)[0];
const server = page.url().match(/\/servers\/[0-9a-f-]{36}/)[0];
await page.fill('#label', 'runaway-agent');
await page.locator('form:has(#label) button[type=submit]').first().click();
await page.locator('#token-once').waitFor();
const token = await page.locator('#token-once').innerText();
must(/^slg_[0-9A-Za-z]{40,}$/.test(token), 'grant', `odd token form: ${token.length} characters`);
await look('grant-token');
say({ step: 'grant', token, proxy: `${BASE.replace(/\/$/, '')}/mcp/${server.split('/')[2]}` });

// 6. Ten pass, the eleventh is refused, in the panel.
const answers = await tryIt('try', 11);
await look('try');
must((answers.match(/\[POLICY DENIED\]/g) ?? []).length === 1, 'try', `not exactly one refusal: ${answers}`);
must(/limited to 10 calls a minute/.test(answers), 'try', 'does not say why');

// 7. The log says why.
await page.goto(`${BASE}${workspace}/logs`);
await page.waitForFunction(() => document.body.innerText.includes('Limited') || location.reload(), null, { timeout: 15_000, polling: 1000 });
await look('logs');
await page.locator('main').getByRole('link', { name: /executePython/ }).first().click();
await page.waitForURL(/\/logs\/[0-9a-f-]{36}/);
await look('log-detail');
const detail = await text();
must(detail.includes('/tools/executePython/limits/0'), 'log-detail', 'does not name the rule');
must(detail.includes('limited to 10 calls a minute'), 'log-detail', 'does not say why');

// 8. Each configuration, run as it stands on the page, for an agent of its own.
at = 'configurations';
await page.goto(`${BASE}${workspace}${server}/grants/new`);
await page.fill('#label', 'configured agent');
await page.locator('form:has(#label) button[type=submit]').first().click();
await page.locator('#token-once').waitFor();
const texts = {};
for (const client of ['claude-desktop', 'claude-code', 'cursor', 'vscode', 'json', 'curl']) {
  texts[client] = await page.locator(`.p-${client} pre code`).textContent();
}
for (const wrong of await runConfigurations(texts, 'executePython', { code: 'print(1)' })) fail(at, wrong);
say({ step: 'configurations', clients: Object.keys(texts) });

// 9. Signed in, the button goes straight to applying.
await page.goto(toolPage);
await link(/Rate-limit this tool/).first().click();
await page.waitForURL(/\/tools\/executePython\/apply/);

// 10. A server that has no tool of the chosen name says so and offers what it has; one that is down says that.
await page.goto(`${BASE}/start?server=cowork-os-cowork-os&tool=execute_code`);
await page.waitForURL(/\/servers\/new/);
await page.fill('#upstream_url', UPSTREAM);
await page.locator('form:has(#upstream_url) button[type=submit]').first().click();
await page.waitForURL(/[?&]wanted=execute/);
await look('wanted');
const wanted = await text();
must(wanted.includes('no tool of that name') && wanted.includes('executePython'), 'wanted', 'does not offer what is there');
await page.goto(`${BASE}${workspace}/servers/new`);
await page.fill('#upstream_url', 'http://127.0.0.1:47113/mcp');
await page.fill('#name', 'Asleep');
await page.locator('form:has(#upstream_url) button[type=submit]').first().click();
await page.waitForURL(/\/settings/);
await look('down');

// 11. The rest of the workspace.
for (const [name, path] of [
  ['overview', '/'], ['servers', '/servers'], ['policies', '/policies'], ['grants', '/grants'],
  ['approvals', '/approvals'], ['members', '/members'], ['api-tokens', '/api-tokens'],
  ['audit', '/audit'], ['settings', '/settings'],
  ['server', server], ['server-tool', `${server}/tools/executePython`],
  ['server-policies', `${server}/policies`], ['server-grants', `${server}/grants`],
  ['server-settings', `${server}/settings`], ['server-try', `${server}/try`],
]) {
  const answer = await page.goto(`${BASE}${workspace}${path}`);
  must(answer.status() === 200, name, `answers ${answer.status()}`);
  must(!(await page.content()).includes('<b>& S'), name, 'markup of a name runs');
  await look(name, false);
}
await page.goto(`${BASE}${workspace}/policies`);
await page.locator('main').getByRole('link', { name: /Recommended rules/ }).first().click();
await look('policy');
const policy = new URL(page.url()).pathname;
await link(/^Edit/).first().click();
await look('policy-edit');
await driveEditor({ browser, context, page, look, must, base: BASE, path: policy, tool: 'executePython' });

// 12. The example server, with one press.
await page.goto(`${BASE}${workspace}/servers/new`);
await button(/example/i).first().click();
await page.waitForURL(/\/servers\/[0-9a-f-]{36}/);
await look('example');

// 13. Public pages and errors.
for (const [name, path, status] of [
  ['catalogue', '/tools', 200], ['attacks', '/attacks', 200], ['docs', '/docs', 200],
  ['attack', '/attacks/tool-poisoning', 200], ['severity', '/risk/high', 200], ['category', '/categories/financial', 200],
  ['guides', '/guides', 200], ['guide', '/guides/code-and-ci-agents', 200], ['report', '/report?page=/tools', 200],
  ['docs-catalogue', '/docs/catalogue', 200],
  ['docs-policy', '/docs/policy', 200], ['styleguide', '/styleguide', 200], ['not-found', '/nothing', 404],
]) {
  at = name;
  const answer = await page.goto(`${BASE}${path}`);
  must(answer.status() === status, name, `answers ${answer.status()}`);
  await look(name, false);
}

// 14. A passkey, as the second step and alone.
await drivePasskeys({ browser, page, look, must, base: BASE, email, password });

// 15. Signing out ends it on the server.
const cookies = await context.cookies();
await page.goto(`${BASE}/account`);
await look('account');
await button(/Sign out/).first().click();
await page.waitForURL((url) => !url.pathname.startsWith('/account'));
await context.clearCookies();
await context.addCookies(cookies);
await page.goto(`${BASE}${workspace}/`);
must(page.url().includes('/login'), 'logout', 'the old cookie still opens the workspace');
await look('login');

await browser.close();
say({ step: 'end', faults });
process.exit(faults.length === 0 ? 0 : 1);

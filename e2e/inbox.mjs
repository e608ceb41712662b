// An approver's day in a real browser: calls are parked by an agent, show up in the open inbox, and are
// read, approved and denied there, by keyboard too; each call comes back as was decided. Looks at the
// filled inbox, an approval's page and the notifications page in both widths and themes.
// BASE, WORKSPACE, EMAIL, PASSWORD, PROXY_URL, TOKEN, TOOL, CHROMIUM, SHOTS. One JSON object a line.
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const { BASE, WORKSPACE, EMAIL, PASSWORD, PROXY_URL, TOKEN, TOOL, CHROMIUM, SHOTS } = process.env;
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const say = (line) => console.log(JSON.stringify(line));
let at = 'start';
let faults = 0;
const must = (holds, what) => {
  if (holds) return;
  faults += 1;
  say({ step: 'fault', at, what });
};

const headers = {
  authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
};
const send = (message) => fetch(PROXY_URL, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'agent', version: '1' } };
const opened = await send({ id: 0, method: 'initialize', params: hello });
await opened.text();
headers['mcp-session-id'] = opened.headers.get('mcp-session-id');
headers['mcp-protocol-version'] = '2025-11-25';
await send({ method: 'notifications/initialized' });

/** An agent's call; resolves with the words that it gets back. */
let calls = 0;
async function call(args) {
  calls += 1;
  const answer = await send({ id: calls, method: 'tools/call', params: { name: TOOL, arguments: args } });
  const text = await answer.text();
  const json = JSON.parse(text.startsWith('{') ? text : text.split('\n').find((line) => line.startsWith('data: ')).slice(6));
  return json.result?.content[0].text ?? text;
}

mkdirSync(SHOTS, { recursive: true });
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
    '--disable-background-networking', '--disable-component-update'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true, reducedMotion: 'reduce' });
await context.grantPermissions(['notifications'], { origin: new URL(BASE).origin });
// What the browser would show its user.
await context.addInitScript(() => {
  window.notes = [];
  const noted = function (title, options) { window.notes.push({ title, ...options }); };
  noted.permission = 'granted';
  noted.requestPermission = async () => 'granted';
  window.Notification = noted;
});
const page = await context.newPage();
process.on('uncaughtExceptionMonitor', () => say({ step: 'lost', after: at, url: page.url() }));
page.on('pageerror', (error) => must(false, `script error: ${error.message}`));

async function look(name) {
  at = name;
  await page.addScriptTag({ path: axe });
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
    must(wide <= 0, `scrolls sideways by ${wide} px at ${width} px`);
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: scheme });
      const found = await page.evaluate(() => window.axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
      }));
      for (const violation of found.violations) {
        const where = violation.nodes.slice(0, 2).map((node) => node.target.join(' ')).join('; ');
        must(false, `axe (${scheme}, ${width}) ${violation.id}: ${violation.help} at ${where}`);
      }
      await page.screenshot({ path: join(SHOTS, `${name}-${width}-${scheme}.png`), fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  say({ step: 'look', page: name });
}

const rows = page.locator('a[data-row]');
const waits = (count) => page.waitForFunction((n) => document.querySelectorAll('a[data-row]').length === n, count);
const text = async () => (await page.locator('main').innerText()).replace(/\s+/g, ' ');

// 1. Signed in, the inbox is open and empty. A call shows up in it by itself.
await page.goto(`${BASE}/login`);
await page.fill('#email', EMAIL);
await page.fill('#password', PASSWORD);
await page.locator('form:has(#password) button[type=submit]').first().click();
await page.waitForURL((url) => !url.pathname.startsWith('/login'));
await page.goto(`${BASE}/w/${WORKSPACE}/approvals`);
await look('inbox-empty');
const first = call({ code: 'print(1)', api_key: 'sk-live-7h1s', note: 'n'.repeat(400) });
await waits(1);

// 2. With an open inbox it is not read anew: what stands in the page stays there. Notifications only
//    once the person asked for them.
await page.waitForFunction(() => document.title.startsWith('(1)'));
await page.evaluate(() => { window.still = true; });
must((await page.evaluate(() => window.notes.length)) === 0, 'notifies without having been asked to');
await page.getByRole('button', { name: 'Notify me in this browser' }).click();
const second = call({ code: 'print(2)' });
await waits(2);
must(await page.evaluate(() => window.still === true), 'the page was read anew');
const notes = await page.evaluate(() => window.notes);
must(notes.length === 1 && notes[0].title.includes(TOOL) && notes[0].body.includes('agent'), `notifications: ${JSON.stringify(notes)}`);
const third = call({ code: 'print(3)' });
const fourth = call({ code: 'print(4)' });
await waits(4);

must((await page.locator('.tabs a').first().innerText()) === 'Waiting 4', 'the tab does not count what came');
must(/^4\b/.test(await page.locator('.side nav a[href$="/approvals"] .count').innerText()), 'the menu does not count what came');

// 3. The oldest first of what is equally risky; what is open is read in full, with its risk and why.
await look('inbox');
await rows.first().click();
await page.waitForURL(/open=/);
const shown = await text();
at = 'item';
must(shown.includes('print(1)'), 'the oldest is not the first');
must(shown.includes('Execute') && shown.includes('High'), 'does not tell the risk');
must(await page.locator('.quote q').count() > 0, 'does not tell why');
must(/What this agent did before/.test(shown), 'does not tell what the agent did before');
must(!shown.includes('7h1s') && shown.includes('[redacted]'), 'shows a secret');
must(await page.locator('details:not([open]) summary', { hasText: '(400 characters)' }).count() === 1, 'a long value is not folded');
await page.getByRole('button', { name: 'Show secrets' }).click();
await page.waitForFunction(() => document.body.innerText.includes('sk-live-7h1s'));
must((await text()).includes('That you looked stands in the log'), 'does not say that looking is logged');
await look('approval-revealed');

// 4. By keyboard: next, and approve. The call goes on with the tool's own answer.
at = 'keyboard';
await page.goto(`${BASE}/w/${WORKSPACE}/approvals`);
await page.keyboard.press('a');
must(await page.evaluate(() => document.activeElement?.value) === 'approve', '`a` does not lead to Approve');
await page.keyboard.press('Enter');
must(/^ran /.test(await first), `the approved call got: ${await first}`);

// 5. Denied with a note, by keyboard; the agent is told the note.
await page.goto(`${BASE}/w/${WORKSPACE}/approvals`);
await waits(3);
await page.fill('textarea[name=note]', 'Not on a Monday.');
await page.locator('h1').first().click();
await page.keyboard.press('d');
must(await page.evaluate(() => document.activeElement?.value) === 'deny', '`d` does not lead to Deny');
await page.keyboard.press('Enter');
must(/Not on a Monday\./.test(await second), `the denied call got: ${await second}`);

// 6. Several at once: chosen by keyboard.
at = 'bulk';
await page.goto(`${BASE}/w/${WORKSPACE}/approvals`);
await waits(2);
await page.keyboard.press('x');
await page.keyboard.press('j');
await page.keyboard.press('x');
must(await page.locator('input[name=id]:checked').count() === 2, '`j` and `x` do not choose two');
await page.getByText('Deny several at once').click();
await page.locator('.inbox-side [name=why]').fill('All of these were a mistake.');
await page.getByRole('button', { name: 'Deny the chosen calls' }).click();
for (const denied of [third, fourth]) must(/were a mistake/.test(await denied), `a call denied with others got: ${await denied}`);

// 7. A page of its own, which tells all that happened; and where people are told.
at = 'pages';
await page.goto(`${BASE}/w/${WORKSPACE}/approvals?status=used`);
await page.locator('main').getByRole('link', { name: TOOL }).first().click();
await page.waitForURL(/\/approvals\/[0-9a-f-]{36}$/);
const history = await text();
for (const word of ['asked', 'approved', 'History']) must(history.toLowerCase().includes(word.toLowerCase()), `its page does not tell: ${word}`);
await look('approval');
await page.goto(`${BASE}/w/${WORKSPACE}/notifications`);
await look('notifications');

await browser.close();
say({ step: 'end', faults });
process.exit(faults === 0 ? 0 : 1);

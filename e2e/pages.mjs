// Looks at every page that the router serves: axe in both themes, shifts of layout, bytes of a first load,
// sideways scrolling from 390 to 1600 px, titles, and movement where none is wanted. A route that is no
// page must be named in NO_PAGE. Then the same pages as each role, and the main path by keyboard alone.
// BASE, TOKEN, UPSTREAM, PASSWORD, PATHS (JSON), CHROMIUM, SHOTS; PICTURES: a folder, if pictures of the
// handbook are to be made. One JSON object a line.
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { byKeyboard } from './keyboard.mjs';
import { asEachRole } from './roles.mjs';
import { scene, TOOL } from './scene.mjs';

const { BASE, PASSWORD, PATHS, CHROMIUM, SHOTS, PICTURES } = process.env;
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const FIRST_LOAD = 60 * 1024;
const say = (line) => console.log(JSON.stringify(line));
let faults = 0;
let at = 'start';
const must = (holds, what) => {
  if (holds) return;
  faults += 1;
  say({ step: 'fault', page: at, what });
};
process.on('uncaughtExceptionMonitor', () => say({ step: 'lost', after: at }));

/** Streams, files and redirects: nothing to look at. */
const NO_PAGE = new Set([
  '/w', '/w/', '/theme', '/logout', '/start', '/login/code', '/login/with/{provider}', '/login/with/{provider}/callback',
  '/cards/{server}/{tool}', '/static/{version}/{name}', '/favicon.ico', '/llms.txt', '/robots.txt', '/sitemap.xml',
  '/sitemaps/{part}', '/tools.json', '/tools.md', '/attacks.json', '/attacks.md', '/docs.json', '/docs.md', '/guides.json', '/guides.md',
  '/w/{ws}/logs/live', '/w/{ws}/logs.csv', '/w/{ws}/logs.ndjson', '/w/{ws}/audit.csv', '/w/{ws}/audit.ndjson',
  '/w/{ws}/approvals/live',
]);
const WORDS = {
  ws: 'acme', tool: TOOL, version: '1', token: 'made-up', severity: 'high', category: 'financial', page: 'editor',
};

/** A route with real names and ids in it. */
function filled(route, ids) {
  let path = route.replace(/\/([a-z-]+)\/\{id\}/g, (_, of) => `/${of}/${ids[of] ?? 'made-up'}`);
  if (route.startsWith('/tools/')) path = path.replace('{server}', 'leghis-smart-e2b');
  if (route.startsWith('/attacks/')) path = path.replace('{slug}', 'tool-poisoning');
  path = path.replace('{slug}', 'code-and-ci-agents');
  return path.replace(/\{(\w+)\}/g, (_, word) => WORDS[word] ?? 'made-up');
}

mkdirSync(SHOTS, { recursive: true });
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
    '--disable-background-networking', '--disable-component-update'],
});

/** A browser of its own, signed in as somebody if an address is given. */
async function visitor(email) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true, reducedMotion: 'reduce' });
  await context.addInitScript(() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts.push(one.value);
    }).observe({ type: 'layout-shift', buffered: true });
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => must(false, `script error: ${error.message}`));
  if (email) {
    await page.goto(`${BASE}/login`);
    await page.fill('#email', email);
    await page.fill('#password', PASSWORD);
    await page.locator('form:has(#password) button[type=submit]').first().click();
    await page.waitForURL((url) => !url.pathname.startsWith('/login'));
  }
  return { context, page, email };
}

/** Asks without following: the status and what would come. */
async function asked({ context }, path) {
  const cookies = (await context.cookies()).map((one) => `${one.name}=${one.value}`).join('; ');
  const stop = new AbortController();
  const answer = await fetch(`${BASE}${path}`, {
    redirect: 'manual', signal: stop.signal, headers: { cookie: cookies, accept: 'text/html' },
  });
  const found = { status: answer.status, html: (answer.headers.get('content-type') ?? '').startsWith('text/html') };
  stop.abort();
  return found;
}

/** Opens a page as if for the first time; gives the bytes that came. */
async function firstLoad({ context, page }, path) {
  const wire = await context.newCDPSession(page);
  await wire.send('Network.enable');
  await wire.send('Network.setCacheDisabled', { cacheDisabled: true });
  let bytes = 0;
  wire.on('Network.loadingFinished', (one) => { bytes += one.encodedDataLength; });
  await page.goto(`${BASE}${path}`, { waitUntil: 'load' });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const shifts = await page.evaluate(() => window.shifts.reduce((sum, one) => sum + one, 0));
  await wire.detach();
  return { bytes, shifts };
}

async function axed(page, scheme, rules) {
  await page.emulateMedia({ colorScheme: scheme });
  const found = await page.evaluate((runOnly) => window.axe.run(document, { runOnly, resultTypes: ['violations'] }), rules);
  for (const violation of found.violations) {
    const where = violation.nodes.slice(0, 2).map((node) => node.target.join(' ')).join('; ');
    must(false, `axe (${scheme}) ${violation.id}: ${violation.help} at ${where}`);
  }
}

/** Everything that holds of every page. */
async function look(who, path) {
  const { page } = who;
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  const { bytes, shifts } = await firstLoad(who, path);
  must(bytes <= FIRST_LOAD, `a first load takes ${bytes} bytes`);
  must(shifts === 0, `its layout shifts by ${shifts}`);
  must(/^\S.* · Sluice$/.test(await page.title()), `is called ${await page.title()}`);
  must(await page.locator('h1').count() === 1, 'has not exactly one first heading');
  must(await page.locator('link[rel=icon]').count() === 1, 'has no icon');
  const moves = await page.evaluate(() => [...document.querySelectorAll('*')].filter((one) => {
    const style = getComputedStyle(one);
    return style.animationName !== 'none' || style.transitionDuration.split(', ').some((time) => time !== '0s');
  }).length);
  must(moves === 0, `${moves} elements move although the reader wants no movement`);
  const times = await page.evaluate(() => [...document.querySelectorAll('time')]
    .filter((one) => !/Z$/.test(one.dateTime) || !/UTC/.test(one.title)).length);
  must(times === 0, `${times} times do not tell the exact UTC`);
  for (const width of [390, 768, 1000, 1280, 1600]) {
    await page.setViewportSize({ width, height: 900 });
    const cut = await page.evaluate(() => [...document.querySelectorAll('.table-box')].filter((one) => one.scrollWidth > one.clientWidth).length);
    must(cut === 0, `${cut} tables are cut at ${width} px`);
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
    must(wide <= 0, `scrolls sideways by ${wide} px at ${width} px`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.addScriptTag({ path: axe });
  await axed(page, 'light', ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']);
  // Of the themes, colours alone differ.
  await axed(page, 'dark', { type: 'rule', values: ['color-contrast'] });
  return bytes;
}

/** The handbook's pictures: the real page in both themes, small. */
async function picture({ context, page }, name, path) {
  await page.setViewportSize({ width: 1000, height: 640 });
  await page.bringToFront();
  const wire = await context.newCDPSession(page);
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(`${BASE}${path}`);
    const { data } = await wire.send('Page.captureScreenshot', { format: 'webp', quality: 60 });
    writeFileSync(join(PICTURES, `docs-${name}-${scheme}.webp`), Buffer.from(data, 'base64'));
  }
  await wire.detach();
}

const ids = await scene();
const admin = await visitor('ann@example.com');
const nobody = await visitor();
let looked = 0;
let most = 0;
for (const route of JSON.parse(PATHS)) {
  at = route;
  const path = filled(route, ids);
  if (NO_PAGE.has(route)) continue;
  let who = admin;
  let answer = await asked(admin, path);
  if (answer.status === 303) {
    who = nobody;
    answer = await asked(nobody, path);
  }
  // Where forms are sent to, and nothing else.
  if (answer.status === 405) continue;
  must(answer.html && answer.status !== 303, `is no page (${answer.status}) and not named as such`);
  must(answer.status === 200 || path.includes('made-up'), `answers ${answer.status}`);
  if (!answer.html || answer.status === 303) continue;
  most = Math.max(most, await look(who, path));
  looked += 1;
}
// Names and texts without a place to break, as anybody may import them.
for (const path of JSON.parse(process.env.LONG)) {
  at = path;
  must((await asked(nobody, path)).status === 200, 'is not there');
  await look(nobody, path);
  for (const width of [1280, 390]) {
    await nobody.page.setViewportSize({ width, height: 900 });
    const cut = await nobody.page.evaluate(() => [...document.querySelectorAll('.table-box')]
      .filter((box) => box.scrollWidth > box.clientWidth).length);
    must(cut === 0, `${cut} tables are cut at ${width} px`);
  }
  await nobody.page.screenshot({ path: join(SHOTS, `long-${path.split(/[/?]/).at(-1).slice(0, 20)}-390.png`) });
}
must(looked > 55, `only ${looked} pages were looked at`);
say({ step: 'pages', looked, most });

if (PICTURES) {
  for (const [name, path] of [
    ['overview', '/w/acme/'], ['server', `/w/acme/servers/${ids.servers}`], ['editor', `/w/acme/policies/${ids.policies}/edit`],
    ['grant', `/w/acme/grants/${ids.grants}`], ['logs', '/w/acme/logs'], ['limits', '/w/acme/limits'],
    ['approvals', '/w/acme/approvals'], ['members', '/w/acme/members'], ['audit', '/w/acme/audit'],
  ]) await picture(admin, name, path);
}

const mark = (name) => { at = name; };
await asEachRole({ base: BASE, ids, visitor, must, mark, shots: SHOTS });
await byKeyboard({ base: BASE, visitor, must, mark, password: PASSWORD });

await browser.close();
say({ step: 'end', faults });
process.exit(faults === 0 ? 0 : 1);

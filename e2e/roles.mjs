// The same pages as an admin, a policy manager, a viewer and a stranger: what each is offered, and what
// becomes of it when somebody tries what is not offered.
import { join } from 'node:path';
import { TOOL } from './scene.mjs';

const ADMIN = 3;
const MANAGER = 2;
const VIEWER = 1;

const PEOPLE = [
  { email: 'ann@example.com', rank: ADMIN, word: 'admin' },
  { email: 'bob@example.com', rank: MANAGER, word: 'policy manager' },
  { email: 'cyd@example.com', rank: VIEWER, word: 'viewer' },
  { email: 'eve@example.com', rank: 0, word: 'stranger' },
];

/** Page, what is on it, and from which role on. */
const offered = (ids) => [
  ['/servers', 'link', 'Connect a server', ADMIN],
  [`/servers/${ids.servers}`, 'button', 'Read tools again', ADMIN],
  [`/servers/${ids.servers}`, 'link', 'Create grant', ADMIN],
  [`/servers/${ids.servers}`, 'link', 'Settings', ADMIN],
  [`/servers/${ids.servers}`, 'link', 'Change rule', MANAGER],
  [`/servers/${ids.servers}`, 'link', TOOL, VIEWER],
  [`/policies/${ids.policies}`, 'link', /^Edit/, MANAGER],
  [`/policies/${ids.policies}`, 'link', 'Versions', VIEWER],
  [`/grants/${ids.grants}`, 'button', 'Attach', MANAGER],
  [`/grants/${ids.grants}`, 'button', 'Save', ADMIN],
  [`/grants/${ids.grants}`, 'link', 'Its calls', VIEWER],
  [`/logs/${ids.logs}`, 'link', 'Make a rule from this', MANAGER],
  ['/logs', 'link', 'CSV', VIEWER],
  [`/approvals/${ids.approvals}`, 'button', /^Approve/, MANAGER],
  ['/members', 'button', 'Create invitation', ADMIN],
  ['/members', 'button', 'Leave', VIEWER],
];

/** Pages that are an admin's, or a manager's. */
const closed = (ids) => [
  ['/api-tokens', ADMIN], ['/audit', ADMIN], ['/security', ADMIN], ['/settings', ADMIN], ['/servers/new', ADMIN],
  [`/servers/${ids.servers}/settings`, ADMIN], [`/servers/${ids.servers}/grants/new`, ADMIN],
  [`/policies/${ids.policies}/edit`, MANAGER], [`/servers/${ids.servers}/policies/new`, MANAGER],
  [`/servers/${ids.servers}/tools/${TOOL}/apply`, MANAGER], [`/logs/${ids.logs}/rule`, MANAGER],
];

/** Forms that nobody offered: where they are sent, and who may. */
const tried = (ids) => [
  [`/servers/${ids.servers}/refresh`, ADMIN], [`/grants/${ids.grants}/rotate`, ADMIN], ['/settings/name', ADMIN],
  [`/servers/${ids.servers}/tools/${TOOL}/accept`, MANAGER], [`/approvals/${ids.approvals}`, MANAGER],
  ['/limits/reset', MANAGER],
];

export async function asEachRole({ base, ids, visitor, must, mark, shots }) {
  for (const { email, rank, word } of PEOPLE) {
    const { context, page } = await visitor(email);
    const open = async (path) => (await page.goto(`${base}/w/acme${path}`)).status();
    for (const [path, role, name, from] of offered(ids)) {
      mark(`${word} at ${path}`);
      if (rank === 0) continue;
      if (!page.url().endsWith(path)) must(await open(path) === 200, 'cannot be opened');
      // Folded away is there too.
      await page.evaluate(() => document.querySelectorAll('main details').forEach((one) => { one.open = true; }));
      const there = await page.locator('main').getByRole(role, { name }).count() > 0;
      must(there === rank >= from, `${there ? 'is offered' : 'is not offered'} “${name}”`);
    }
    for (const [path, from] of closed(ids)) {
      mark(`${word} at ${path}`);
      const status = await open(path);
      const wanted = rank === 0 ? 404 : rank >= from ? 200 : 403;
      must(status === wanted, `is answered ${status}, not ${wanted}`);
      const text = await page.locator('main').innerText();
      if (wanted === 403) must(/Ask an admin/.test(text), 'is not told whom to ask');
      if (wanted === 404) must(!/python-sandbox|nightly-agent/.test(text), 'is told a name of another workspace');
    }
    // What is not offered is refused as well, with a form's own token.
    await page.goto(`${base}/account`);
    const csrf = await page.locator('input[name=csrf]').first().inputValue();
    for (const [path, from] of tried(ids)) {
      mark(`${word} sends to ${path}`);
      if (rank >= from) continue;
      const status = await page.evaluate(async ([to, token]) => {
        const answer = await fetch(to, { method: 'POST', redirect: 'manual', body: new URLSearchParams({ csrf: token }), headers: { accept: 'text/html' } });
        return answer.status;
      }, [`/w/acme${path}`, csrf]);
      must(status === (rank === 0 ? 404 : 403), `is answered ${status}`);
    }
    mark(`${word}'s pictures`);
    await page.goto(`${base}/w/acme/servers/${ids.servers}`);
    for (const width of [390, 1280]) {
      for (const scheme of ['light', 'dark']) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme: scheme });
        await page.screenshot({ path: join(shots, `role-${word.replace(' ', '-')}-${width}-${scheme}.png`) });
      }
    }
    await context.close();
  }
}

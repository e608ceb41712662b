// Passkeys in a real browser, with the authenticator in software that its DevTools protocol has: one is made
// on the account's page, is the second step after the password, signs in alone, and is taken away.

/** Goes through it as somebody who has just made an account with this password. */
export async function drivePasskeys({ browser, page, look, must, base, email, password }) {
  const name = 'passkeys';
  const authenticator = async (onPage) => {
    const devtools = await onPage.context().newCDPSession(onPage);
    await devtools.send('WebAuthn.enable');
    const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2', ctap2Version: 'ctap2_1', transport: 'internal', hasResidentKey: true,
        hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true,
      },
    });
    return { devtools, authenticatorId };
  };

  await page.goto(`${base}/account/passkeys`);
  await look('passkeys-none');
  const first = await authenticator(page);
  await page.getByLabel('Name').fill('Test key');
  await page.getByLabel('Your password').fill(password);
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByRole('button', { name: 'Go on' }).waitFor();
  await look('passkey-begun');
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.getByText(/recovery codes/i).first().waitFor();
  await look('passkey-codes');
  await page.goto(`${base}/account/passkeys`);
  must((await page.innerText('main')).includes('Test key'), name, 'the passkey is not listed');
  await look('passkeys');

  // The same key in another browser, which has no session.
  const { credentials } = await first.devtools.send('WebAuthn.getCredentials', { authenticatorId: first.authenticatorId });
  must(credentials.length === 1, name, `the authenticator has ${credentials.length} passkeys`);
  const context = await browser.newContext();
  const other = await context.newPage();
  const second = await authenticator(other);
  await second.devtools.send('WebAuthn.addCredential', { authenticatorId: second.authenticatorId, credential: credentials[0] });
  await other.goto(`${base}/login`);
  await other.getByLabel('E-mail').fill(email);
  await other.getByLabel('Password').fill(password);
  await other.getByRole('button', { name: 'Sign in', exact: true }).click();
  await other.waitForURL(/\/login\/code/);
  await other.getByRole('button', { name: 'Use a passkey' }).click();
  await other.waitForURL(/\/w(\/|$)|\/workspaces\/new/);
  await context.clearCookies();
  await other.goto(`${base}/login?next=%2Faccount%2Fpasskeys`);
  await other.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await other.waitForURL(`${base}/account/passkeys`);
  must((await other.innerText('main')).includes('last used'), name, 'the use is not shown');

  // Who is not checked by the authenticator is not let in by it alone.
  await context.clearCookies();
  await second.devtools.send('WebAuthn.setUserVerified', { authenticatorId: second.authenticatorId, isUserVerified: false });
  await other.goto(`${base}/login`);
  await other.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await other.waitForFunction(() => document.querySelector('[data-say]').textContent.includes('Nothing came'));
  await context.close();

  await page.getByText('Take it away').click();
  await page.locator('details[open]').getByLabel('Your password').fill(password);
  await page.getByRole('button', { name: 'Take away' }).click();
  await page.getByText('It signs you in no more').waitFor();
  await first.devtools.send('WebAuthn.disable');
}

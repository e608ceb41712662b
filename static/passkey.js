// Passkeys: asks the browser's authenticator what the server asks, and sends the answer by the page's own form.
const forms = document.querySelectorAll("form[data-passkey]");
const read = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const write = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const many = (ids) => ids.map((id) => ({ type: "public-key", id: read(id) }));

async function make(q) {
  const made = await navigator.credentials.create({
    publicKey: {
      challenge: read(q.challenge),
      rp: { id: q.site, name: "Sluice" },
      user: { id: read(q.user), name: q.email, displayName: q.email },
      pubKeyCredParams: q.algorithms.map((alg) => ({ type: "public-key", alg })),
      excludeCredentials: many(q.credentials),
      authenticatorSelection: { residentKey: "preferred", userVerification: "preferred" },
      attestation: "none",
      timeout: 240000,
    },
  });
  return { client_data: write(made.response.clientDataJSON), attestation: write(made.response.attestationObject) };
}

async function use(q) {
  const got = await navigator.credentials.get({
    publicKey: {
      challenge: read(q.challenge),
      rpId: q.site,
      allowCredentials: many(q.credentials),
      userVerification: q.verify ? "required" : "preferred",
      timeout: 240000,
    },
  });
  return {
    credential: write(got.rawId),
    client_data: write(got.response.clientDataJSON),
    authenticator_data: write(got.response.authenticatorData),
    signature: write(got.response.signature),
    user: got.response.userHandle ? write(got.response.userHandle) : "",
  };
}

async function ask(form) {
  const body = new URLSearchParams({ csrf: form.elements.csrf.value, step: form.elements.step.value });
  const answer = await fetch("/login/passkey/question", { method: "POST", body });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.detail);
  return said;
}

function told(error) {
  if (error.name === "NotAllowedError") return "Nothing came from the authenticator: it was cancelled, or took too long. Try again.";
  if (error.name === "InvalidStateError") return "This authenticator has a passkey of your account already.";
  return error.message;
}

for (const form of forms) {
  const say = (words) => { form.querySelector("[data-say]").textContent = words; };
  if (!window.PublicKeyCredential) {
    say("This browser has no passkeys.");
    continue;
  }
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    say("");
    try {
      const fields = form.dataset.question ? await make(JSON.parse(form.dataset.question)) : await use(await ask(form));
      for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
      form.submit();
    } catch (error) {
      say(told(error));
    }
  });
}

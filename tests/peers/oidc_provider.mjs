/* An authorization server: the package `oidc-provider` on a free port of 127.0.0.1.

Usage: node oidc_provider.mjs PACKAGES

PACKAGES is the folder `node_modules` with the package. The one line of output is the port.

It demands PKCE, registers clients, gives access tokens for any resource (RFC 8707), binds them to
a key where the client proves one (DPoP), rotates refresh tokens, introspects and revokes. One user
logs in without a password, and agrees to everything. Tests steer it by POST /control with a JSON
object, whose members are those of `settings`; the response has what was done since the last time.
*/

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

console.info = console.warn = () => {}; // its hints for production
const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const { port } = server.address();
const packages = process.argv[2];
const { default: Provider } = await import(
  pathToFileURL(join(packages, "oidc-provider", "lib", "index.js"))
);

const settings = {
  ahead: 0, // seconds that its clock is ahead of the real time
  lifetime: 3600, // seconds that an access token is valid
  format: "jwt", // of access tokens: jwt, or opaque
  refresh: "asked", // when it gives refresh tokens: asked (for offline_access), or always
};
let grants = []; // the grant types of the token responses since the last POST /control

const now = Date.now;
Date.now = () => now() + settings.ahead * 1000;

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "resource server",
      client_secret: "50% of a secret + more",
      grant_types: [],
      redirect_uris: [],
      response_types: [],
    },
  ],
  clientDefaults: { id_token_signed_response_alg: "ES256" },
  features: {
    devInteractions: { enabled: false },
    dPoP: { enabled: true },
    introspection: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: "use write",
        audience: resource,
        accessTokenTTL: settings.lifetime,
        accessTokenFormat: settings.format,
        jwt: { sign: { alg: "ES256" } },
      }),
    },
    revocation: { enabled: true },
  },
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: (ctx, client, source) =>
    client.grantTypeAllowed("refresh_token") &&
    (settings.refresh === "always" || source.scopes.has("offline_access")),
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig" }] },
  pkce: { required: () => true },
  // Without `write`: a client that was registered for one of these scopes never gets another one.
  scopes: ["offline_access", "use"],
});
provider.on("grant.success", (ctx) => grants.push(ctx.oidc.params.grant_type));

async function control(ctx) {
  const chunks = [];
  for await (const chunk of ctx.req) chunks.push(chunk);
  Object.assign(settings, JSON.parse(Buffer.concat(chunks)));
  ctx.body = { grants };
  grants = [];
}

async function interact(ctx) {
  const { prompt, params, session } = await provider.interactionDetails(ctx.req, ctx.res);
  let result = { login: { accountId: "ann" } };
  if (prompt.name === "consent") {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope((prompt.details.missingOIDCScope ?? []).join(" "));
    const scopes = prompt.details.missingResourceScopes ?? {};
    for (const [resource, names] of Object.entries(scopes)) {
      grant.addResourceScope(resource, names.join(" "));
    }
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
}

provider.use((ctx, next) => {
  if (ctx.path === "/control") return control(ctx);
  if (ctx.path.startsWith("/interaction/")) return interact(ctx);
  return next();
});
server.on("request", provider.callback());
console.log(port);

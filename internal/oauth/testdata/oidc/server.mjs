// An authorization server on a free port of 127.0.0.1, with a client for each
// auth style. Usage: node server.mjs DIR, where DIR has node_modules. It prints
// its port and ends when its standard input does.
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(path.resolve(process.argv[2]), 'from.cjs'));
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href);

const client = (id, secret, method, more = {}) => ({
  client_id: id,
  client_secret: secret,
  token_endpoint_auth_method: method,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  scope: 'api:read',
  ...more,
});
const secret = 'made up: 100%+/=&? for a test';

const server = http.createServer();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [
      client('body-client', secret, 'client_secret_post'),
      client('basic:client+1', secret, 'client_secret_basic'),
      client('brief', secret, 'client_secret_post'),
      client('no-grant', secret, 'client_secret_post', {
        grant_types: ['authorization_code'], response_types: ['code'], redirect_uris: ['https://app.example.com/back'],
      }),
    ],
    scopes: ['api:read', 'api:write'],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post'],
    features: {
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      devInteractions: { enabled: false },
    },
    ttl: { ClientCredentials: (_ctx, _token, { clientId }) => (clientId === 'brief' ? 2 : 600) },
  });
  server.on('request', provider.callback());
  console.log(port);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));

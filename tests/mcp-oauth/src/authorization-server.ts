import Provider from 'oidc-provider';
import { listen } from './listen.ts';

/** A client that signs in by itself. */
export const MACHINE = { id: 'machine', secret: 'a-secret-of-the-machine' };

/** What a token permits, and whose it is. */
export interface Grant {
  subject: string;
  scopes: string[];
}

/** A certified authorization server (OpenID Connect, RFC 8707, RFC 9207) with dynamic registration. */
export interface AuthorizationServer {
  issuer: string;
  /** What it has issued, codes and tokens of both kinds: none of it may be found where it does not belong. */
  issued: string[];
  /** Grants that clients have asked tokens for, in order. */
  grants: string[];
  /** What a token permits at this resource, if it is good there. */
  check(token: string, resource: string): Promise<Grant | undefined>;
  /** Ends all access tokens; refresh tokens stay good. */
  expire(): Promise<void>;
  stop(): Promise<void>;
}

export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const place = await listen();
  const provider = new Provider(place.url, {
    scopes: ['openid', 'offline_access', 'tools'],
    features: {
      registration: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: 'tools',
          audience: resource,
          accessTokenFormat: 'opaque',
          accessTokenTTL: 3600,
        }),
      },
    },
    issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    clients: [
      {
        client_id: MACHINE.id,
        client_secret: MACHINE.secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        scope: 'tools',
      },
    ],
  });
  const issued: string[] = [];
  const grants: string[] = [];
  const access: string[] = [];
  provider.on('access_token.saved', (token) => issued.push(token.jti) && access.push(token.jti));
  provider.on('client_credentials.saved', (token) => issued.push(token.jti) && access.push(token.jti));
  provider.on('refresh_token.saved', (token) => issued.push(token.jti));
  provider.on('authorization_code.saved', (code) => issued.push(code.jti));
  provider.on('grant.success', (ctx) => grants.push(String(ctx.oidc.params?.grant_type)));
  const find = async (value: string) =>
    (await provider.AccessToken.find(value)) ?? (await provider.ClientCredentials.find(value));
  place.answer(provider.callback());
  return {
    issuer: place.url,
    issued,
    grants,
    check: async (value, resource) => {
      const token = await find(value);
      if (token?.aud !== resource) return undefined;
      const subject = 'accountId' in token ? token.accountId : token.clientId;
      return { subject: subject ?? '', scopes: (token.scope ?? '').split(' ') };
    },
    expire: async () => {
      for (const value of access.splice(0)) await (await find(value))?.destroy();
    },
    stop: place.stop,
  };
}

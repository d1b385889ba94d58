/** Tokens from an OAuth 2 server by the client credentials grant (RFC 6749, section 4.4). */
import { Kinds } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { ClientCredentials, Token } from "./options.ts"
import type { Secrets } from "./secrets.ts"
import { TokenUnavailable } from "./tokenUnavailable.ts"

/** The modules of the HTTP client are loaded by the first request: a program without OAuth starts without them. */
export const requestToken = (
  credentials: ClientCredentials,
  secrets: Secrets
): Effect.Effect<Token, TokenUnavailable> => {
  const { tokenEndpoint } = credentials
  const [refused] = Kinds.httpUrl("tokenEndpoint", tokenEndpoint)
  if (refused !== undefined) {
    const detail = `${refused.allowed} is expected`
    return Effect.fail(new TokenUnavailable({ tokenEndpoint: refused.found, detail }))
  }
  const loaded = Effect.tryPromise({
    try: () => import("./tokenRequest.ts"),
    // Such as files that a deploy replaces. The next connection tries again.
    catch: (error) => new TokenUnavailable({ tokenEndpoint, detail: String(error) })
  })
  return Effect.flatMap(loaded, (module) => module.requestToken(credentials, secrets))
}

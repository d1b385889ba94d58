/** The failure of a request for a token, apart from the request itself, which loads an HTTP client. */
import * as Schema from "effect/Schema"

/** The OAuth 2 server returned no token. */
export class TokenUnavailable extends Schema.TaggedError<TokenUnavailable>()("TokenUnavailable", {
  /** URL of the token endpoint. */
  tokenEndpoint: Schema.String,
  /** The reason, with secrets redacted. */
  detail: Schema.String
}) {
  override get message(): string {
    return `no token from ${this.tokenEndpoint}: ${this.detail}`
  }
}

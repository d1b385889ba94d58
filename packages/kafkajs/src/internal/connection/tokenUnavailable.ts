import { Schema } from "effect"

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

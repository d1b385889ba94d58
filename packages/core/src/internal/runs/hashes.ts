/** SHA-256 in hexadecimal digits. */
import * as Effect from "effect/Effect"

const encoder = new TextEncoder()

/** Of a value; `none` for null, which has no bytes. */
export const ofBytes = (bytes: Uint8Array | null): Effect.Effect<string> =>
  bytes === null
    ? Effect.succeed("none")
    : Effect.map(
        Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", bytes.slice())),
        (digest) => Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")
      )

/** Of lines of text. */
export const ofLines = (lines: ReadonlyArray<string>): Effect.Effect<string> =>
  ofBytes(encoder.encode(lines.join("\n")))

/**
 * Checks what a program gives the API in code, where types do not hold: a misspelled permission would refuse every caller, and only when it is needed.
 */
import { type EventBusError, Kinds, Ranges } from "@eventbus/core"
import * as Redacted from "effect/Redacted"
import { permissions } from "./permissions.ts"

const path = Kinds.make(
  "a path such as '/ops/eventbus': segments of letters, digits and -._~ behind slashes",
  (value) => typeof value === "string" && /^\/$|^(?:\/[\w.~-]+)+\/?$/.test(value)
)

const ofRoutes = {
  prefix: path,
  probes: path,
  authorizer: Kinds.func,
  readOnly: Kinds.flag,
  console: Kinds.flag,
  metrics: Kinds.effect
}

/** A header has no line breaks, and blanks around a token would be cut: such a token would never be recognised. The problem does not show it. */
const token: Ranges.Kind = (path, found) =>
  isPlainToken(textOf(found))
    ? []
    : [
        {
          path,
          found: "something else",
          allowed: "a text, which may be redacted, without blanks and line breaks, not empty"
        }
      ]

const textOf = (token: unknown): unknown => (Redacted.isRedacted(token) ? Redacted.value(token) : token)

const isPlainToken = (token: unknown): boolean => typeof token === "string" && /^[\x21-\x7e]+$/.test(token)

const key = Kinds.make("'{cluster}:{binding}'", (value) => typeof value === "string" && /^[^:]+:./s.test(value))

const ofToken = Kinds.struct(
  { bindings: Kinds.listOf(key, "a list of '{cluster}:{binding}'") },
  {
    token,
    name: Kinds.name,
    permissions: Kinds.listOf(Kinds.oneOf(permissions), `a list of ${permissions.join(", ")}`)
  }
)

/** Throws `ConfigurationValidation` with every option that cannot be used. */
export const checkRoutes = (options: object): void =>
  Kinds.refuse(Ranges.problemsOfAll(options, ofRoutes, "AdminRoutes."))

const ofServer = Kinds.struct(
  { host: Kinds.name },
  {
    port: Kinds.make(
      "a whole number, 0 to 65535",
      (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535
    )
  }
)

/** Throws `ConfigurationValidation` when a server cannot listen there. */
export const checkServer = (options: unknown): void => Kinds.refuse(ofServer("AdminServer", options))

/** Throws `ConfigurationValidation` with everything that cannot be used. It shows no token. */
export const checkTokens = (tokens: ReadonlyArray<{ readonly token: Redacted.Redacted<string> | string }>): void => {
  Kinds.refuse(Kinds.listOf(ofToken, "a list of tokens")("tokens", tokens))
  Kinds.refuse(repeated(tokens.map(({ token }) => String(textOf(token)))))
}

const repeated = (tokens: ReadonlyArray<string>): ReadonlyArray<EventBusError.ConfigurationIssue> =>
  tokens.flatMap((token, index) => {
    const first = tokens.indexOf(token)
    return first === index
      ? []
      : [
          {
            path: `tokens[${index}].token`,
            found: `the token of tokens[${first}]`,
            allowed: "a token that no other has"
          }
        ]
  })

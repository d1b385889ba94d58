/**
 * Checks what a program gives the API in code, where types do not hold: a misspelled permission would refuse every caller, and only when it is needed.
 */
import { EventBusError } from "@eventbus/core"
import { Effect, Redacted } from "effect"
import { permissions } from "./permissions.ts"

type Issue = EventBusError.ConfigurationIssue

interface Rule {
  readonly allowed: string
  readonly holds: (value: unknown) => boolean
}

const path: Rule = {
  allowed: "a path such as '/ops/eventbus': segments of letters, digits and -._~ behind slashes",
  holds: (value) => typeof value === "string" && /^(?:\/[\w.~-]+)*\/?$/.test(value) && value.startsWith("/")
}
const boolean: Rule = { allowed: "true or false", holds: (value) => typeof value === "boolean" }

const ofRoutes: Readonly<Record<string, Rule>> = {
  prefix: path,
  probes: path,
  authorizer: { allowed: "a function", holds: (value) => typeof value === "function" },
  readOnly: boolean,
  metrics: { allowed: "an Effect that gives a text", holds: Effect.isEffect }
}

const isList = (value: unknown, holds: (each: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(holds)

const ofToken: Readonly<Record<string, Rule>> = {
  token: {
    allowed: "a redacted text without blanks and line breaks, not empty",
    holds: (value) => Redacted.isRedacted(value) && isPlainToken(Redacted.value(value))
  },
  name: { allowed: "a text, not empty", holds: (value) => typeof value === "string" && value !== "" },
  permissions: {
    allowed: `a list of ${permissions.join(", ")}`,
    holds: (value) => isList(value, (each) => (permissions as ReadonlyArray<unknown>).includes(each))
  },
  bindings: {
    allowed: "a list of '{cluster}:{binding}'",
    holds: (value) => isList(value, (each) => typeof each === "string" && /^[^:]+:./s.test(each))
  }
}

/** A header has no line breaks, and blanks around a token would be cut: such a token would never be recognised. */
const isPlainToken = (token: unknown): boolean => typeof token === "string" && /^[\x21-\x7e]+$/.test(token)

const issuesOf = (given: object, rules: Readonly<Record<string, Rule>>, prefix: string): ReadonlyArray<Issue> =>
  Object.entries(rules).flatMap(([name, { allowed, holds }]) => {
    const value: unknown = (given as Readonly<Record<string, unknown>>)[name]
    return (value === undefined && !required.has(name)) || holds(value)
      ? []
      : [{ path: `${prefix}.${name}`, found: name === "token" ? "something else" : shown(value), allowed }]
  })

const required: ReadonlySet<string> = new Set(["token", "name", "permissions"])

const shown = (value: unknown): string => {
  if (typeof value === "string") return `'${value}'`
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`
  return value === null || ["undefined", "boolean", "number", "bigint"].includes(typeof value)
    ? `${value}`
    : typeof value
}

const refuse = (issues: ReadonlyArray<Issue>): void => {
  if (issues.length > 0) throw new EventBusError.ConfigurationValidation({ issues })
}

/** Throws `ConfigurationValidation` with every option that cannot be used. */
export const checkRoutes = (options: object): void => refuse(issuesOf(options, ofRoutes, "AdminRoutes"))

/** Throws `ConfigurationValidation` with everything that cannot be used. It shows no token. */
export const checkTokens = (tokens: ReadonlyArray<{ readonly token: Redacted.Redacted<string> }>): void => {
  refuse(tokens.flatMap((token, index) => issuesOf(token, ofToken, `tokens[${index}]`)))
  const seen = new Map<string, number>()
  refuse(
    tokens.flatMap(({ token }, index) => {
      const first = seen.get(Redacted.value(token))
      if (first === undefined) seen.set(Redacted.value(token), index)
      const [path, found] = [`tokens[${index}].token`, `the token of tokens[${first}]`]
      return first === undefined ? [] : [{ path, found, allowed: "a token that no other has" }]
    })
  )
}

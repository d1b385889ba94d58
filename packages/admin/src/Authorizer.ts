/**
 * Decides which caller of the admin API may do what. Without an authorizer the API answers only callers on this machine, and changes nothing.
 *
 * ```ts
 * import { Authorizer } from "@eventbus/admin"
 * import { Config, Effect } from "effect"
 *
 * export const authorizer = Effect.map(Config.Redacted("ADMIN_TOKEN"), (token) =>
 *   Authorizer.fromTokens([{ token, name: "on-call", permissions: ["view", "operate", "replay"] }])
 * )
 * ```
 */
import { createHash, timingSafeEqual } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as OptionChecks from "./internal/optionChecks.ts"
import { permissions } from "./internal/permissions.ts"

/**
 * A kind of action.
 *
 * - `view`: read states, figures, health and dead letter statistics.
 * - `view-payload`: see keys, values, headers and the messages of errors in answers about dead letters and dead events. A request needs `view` beside it. Each such answer is a line in the log.
 * - `operate`: start, stop, pause and resume; dead-letter records that hold their partition; retry and skip those that hold their key; pause and cancel runs over dead letters, and the work on dead events.
 * - `replay`: publish dead letters again, by plans and runs too, and rehearse that; replay dead events of the outbox.
 * - `transform`: let a named function of the binding repair dead letters on their way. A plan with one needs `replay` beside it.
 * - `discard`: purge dead letters, give them up, and bring those back that were given up; skip records that hold their partition; delete dead events of the outbox.
 * - `admin`: register and remove bindings.
 */
export const Permission = Schema.Literals(permissions)
export type Permission = typeof Permission.Type

/** The caller that an authorizer has recognised. */
export interface Principal {
  /** The name in log lines. */
  readonly name: string
}

/** The request has no credential, or one that the authorizer does not know. Nothing was done. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()("Unauthorized", {}) {
  override get message(): string {
    return "The request has no valid credential. Send one as 'Authorization: Bearer ...'."
  }
}

/** The caller is known, and does not have the permission. Nothing was done. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", {
  /** The permission that is missing. */
  permission: Permission,
  /** `{cluster}:{binding}`, or the name as the request gives it when no binding has it. Absent when the request is about all bindings. */
  binding: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return `The caller does not have the permission '${this.permission}'${this.binding === undefined ? "" : ` on binding '${this.binding}'`}.`
  }
}

/**
 * Answers who a caller is, or fails. `credential` is the bearer token, empty when there is none. `binding` is `{cluster}:{binding}`, or the name as the request gives it
 * when no binding has it; undefined for requests about all bindings: the list, health, registration, and the outbox. It has 10 seconds; a defect, and no answer in time, means no.
 */
export type Authorizer = (
  credential: Redacted.Redacted<string>,
  permission: Permission,
  binding: string | undefined
) => Effect.Effect<Principal, Unauthorized | Forbidden>

/** A fixed token, and what its bearer may do. */
export interface Token extends Principal {
  /** The token, as a text or redacted: printable ASCII without blanks, not empty. A file that a token is read from often ends with a line break, which has to be cut. */
  readonly token: Redacted.Redacted<string> | string
  /** The permissions of its bearer. */
  readonly permissions: ReadonlyArray<Permission>
  /** The bindings that the permissions are for, as `{cluster}:{binding}`. With it, requests about all bindings are refused. Default: all. */
  readonly bindings?: ReadonlyArray<string>
}

/** An authorizer of fixed tokens. It compares them in constant time. Throws `ConfigurationValidation` with everything in the tokens that cannot be used. */
export const fromTokens = (tokens: ReadonlyArray<Token>): Authorizer => {
  OptionChecks.checkTokens(tokens)
  const known = tokens.map(({ token, ...holder }) => ({
    ...holder,
    digest: digestOf(typeof token === "string" ? Redacted.make(token) : token)
  }))
  return (credential, permission, binding) => {
    const digest = digestOf(credential)
    const holder = known.find((each) => timingSafeEqual(each.digest, digest))
    if (holder === undefined) return Effect.fail(new Unauthorized())
    const isWithin = holder.bindings === undefined || (binding !== undefined && holder.bindings.includes(binding))
    return holder.permissions.includes(permission) && isWithin
      ? Effect.succeed({ name: holder.name })
      : Effect.fail(new Forbidden({ permission, ...(binding === undefined ? {} : { binding }) }))
  }
}

const digestOf = (token: Redacted.Redacted<string>): Buffer =>
  createHash("sha256").update(Redacted.value(token)).digest()

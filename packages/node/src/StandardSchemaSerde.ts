/** JSON that a schema of the Standard Schema checks: Zod, Valibot, ArkType, Effect's `Schema.toStandardSchemaV1`. */
import { Serde, UserFunction } from "@eventbus/core"
import { Result } from "effect"
import type { StandardSchemaV1 } from "effect/StandardSchema"

/**
 * A serde of JSON in UTF-8 whose values a schema checks. Reading gives what the schema makes of the JSON, transformations included. A value that the schema refuses is a
 * `DecodeFailure` that names each problem with its path: its record goes to the dead letter topic, and the handler never sees it. Writing refuses a value whose JSON the schema
 * does not read again, with an `EncodeFailure`. A schema that answers with a promise is refused: such a check belongs into the handler.
 *
 * ```ts
 * import { consumer, Serde, standardSchema } from "@eventbus/node"
 * import { z } from "zod"
 *
 * const Order = z.object({ id: z.string(), cents: z.int() })
 *
 * export const orders = consumer({
 *   topic: "orders",
 *   groupId: "billing",
 *   key: Serde.string,
 *   value: standardSchema(Order),
 *   handler: async ({ value }) => console.log(value.id, value.cents)
 * })
 * ```
 */
export const standardSchema = <I, A>(schema: StandardSchemaV1<I, A>): Serde.Serde<A> => {
  const { vendor, validate } = schema["~standard"]
  const name = `json(${vendor})`
  const check = (json: unknown): A => {
    const answer = UserFunction.plain("a schema", validate(json), "an answer at once")
    const result = answer as Exclude<typeof answer, PromiseLike<unknown>>
    if (result.issues !== undefined) throw new Refused(result.issues)
    return result.value
  }
  return {
    name,
    decode: (bytes) => {
      if (bytes === null)
        return Result.fail(failure(Serde.DecodeFailure, name, "a tombstone (null) arrived; use Serde.nullable"))
      try {
        return Result.succeed(check(parse(bytes)))
      } catch (thrown) {
        return Result.fail(failure(Serde.DecodeFailure, name, thrown))
      }
    },
    encode: (value) => {
      try {
        const text = JSON.stringify(value)
        if (text === undefined) throw new TypeError(`${typeof value} has no JSON`)
        check(JSON.parse(text))
        return Result.succeed(encoder.encode(text))
      } catch (thrown) {
        return Result.fail(failure(Serde.EncodeFailure, name, thrown))
      }
    }
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })

const parse = (bytes: Uint8Array): unknown => {
  if (bytes.length === 0) throw new Error("zero bytes are not JSON")
  return JSON.parse(decoder.decode(bytes))
}

/** Problems that one failure lists. */
const maxProblems = 20

/** Carries the problems that a schema found. */
class Refused extends Error {
  readonly path: string
  constructor(issues: ReadonlyArray<StandardSchemaV1.Issue>) {
    const lines = issues
      .slice(0, maxProblems)
      .map(({ message, path }) => (path?.length ? `${message} at ${formatPath(path)}` : message))
    if (issues.length > maxProblems) lines.push(`and ${issues.length - maxProblems} more`)
    super(lines.join("; "))
    this.path = formatPath(issues[0]?.path ?? [])
  }
}

/** A path as core's serdes write it: `["items"][0]["price"]`. */
const formatPath = (path: NonNullable<StandardSchemaV1.Issue["path"]>): string =>
  path
    .map((segment) => (typeof segment === "object" ? segment.key : segment))
    .map((key) => (typeof key === "string" ? `[${JSON.stringify(key)}]` : `[${String(key)}]`))
    .join("")

const failure = <F>(
  Failure: new (fields: { readonly serde: string; readonly path: string; readonly detail: string }) => F,
  serde: string,
  thrown: unknown
): F =>
  new Failure({
    serde,
    path: thrown instanceof Refused ? thrown.path : "",
    detail: thrown instanceof Error ? thrown.message : String(thrown)
  })

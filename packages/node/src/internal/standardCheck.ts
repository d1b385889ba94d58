/** Checks a value by a schema of the Standard Schema, and says what it refuses. */
import { UserFunction } from "@eventbus/core"
import type { StandardSchemaV1 } from "effect/StandardSchema"

/** Gives the value that the schema makes of a value. Throws when it refuses the value, or answers with a promise. */
export const make =
  <I, A>(schema: StandardSchemaV1<I, A>): ((value: unknown) => A) =>
  (value) => {
    const answer = UserFunction.plain("a schema", schema["~standard"].validate(value), "an answer at once")
    const result = answer as Exclude<typeof answer, PromiseLike<unknown>>
    if (result.issues !== undefined) throw new Refused(result.issues)
    return result.value
  }

/** A failure of a serde from what was thrown. */
export const failure = <F>(
  Failure: new (fields: { readonly serde: string; readonly path: string; readonly detail: string }) => F,
  serde: string,
  thrown: unknown
): F =>
  new Failure({
    serde,
    path: thrown instanceof Refused ? thrown.path : "",
    detail: thrown instanceof Error ? thrown.message : String(thrown)
  })

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

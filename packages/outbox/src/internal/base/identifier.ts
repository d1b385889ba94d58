/** The one check that every table name from outside has to pass (ruling 48). */
import { Effect } from "effect"
import { InvalidIdentifier } from "../../OutboxError.ts"

// 40 characters leave room for the suffixes of derived names (indexes, bucket and node tables) within PostgreSQL's 63 bytes.
const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/

/**
 * Accepts a table name, optionally qualified by a schema (`app.outbox_event`). Each part has 1 to 40 ASCII letters, digits and
 * underscores, and does not start with a digit.
 */
export const checkTableName = (name: string): Effect.Effect<string, InvalidIdentifier> => {
  const parts = name.split(".")
  return parts.length <= 2 && parts.every((part) => identifier.test(part))
    ? Effect.succeed(name)
    : Effect.fail(new InvalidIdentifier({ what: "table name", name }))
}

import type { Configuration } from "@eventbus/config"
import type { EventBusError } from "@eventbus/core"
import { Effect } from "effect"

/** The issues of a configuration that is refused, one line each: path, what was found, what is allowed. */
export const issuesOf = (
  read: Effect.Effect<Configuration.Configuration, EventBusError.ConfigurationValidation>
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(Effect.orDie(Effect.flip(read)), ({ issues }) =>
    issues.map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)
  )

/** A file with one binding, `orders`, of which these are the keys beside topic and group. */
export const withOrders = (...lines: ReadonlyArray<string>): string =>
  ["eventbus:", "  bindings:", "    orders:", "      topic: orders", "      group-id: billing"]
    .concat(lines.map((line) => `      ${line}`))
    .join("\n")

/**
 * The flags that say which dead events a command is about.
 */

import type { DeadEvents } from "@eventbus/outbox"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import type * as Option from "effect/Option"
import * as Flags from "../flags.ts"

export const eventId = Argument.String("event-id").pipe(Argument.withDescription("The id of a dead event"))

/** Groups of dead events, by fingerprint. */
export const group = Flag.String("group").pipe(
  Flag.withAlias("g"),
  Flag.withMetavar("fingerprint"),
  Flag.withDescription("Of this group, as 'outbox dead groups' names it")
)

export const ofEvent = {
  type: Flag.String("type").pipe(Flag.withDescription("Events of this type"), Flag.optional),
  aggregateType: Flag.String("aggregate-type").pipe(
    Flag.withDescription("Events about this type of aggregate"),
    Flag.optional
  ),
  aggregateId: Flag.String("aggregate-id").pipe(
    Flag.withDescription("Events about the aggregate with this id"),
    Flag.optional
  )
}

const many = { least: 0, most: 1_000 }

export const flags = {
  group: Flag.between(group, many.least, many.most),
  ...ofEvent,
  id: Flag.String("id").pipe(
    Flag.withMetavar("event-id"),
    Flag.withDescription("The event with this id; may be repeated"),
    Flag.between(many.least, many.most)
  ),
  all: Flag.Boolean("all").pipe(Flag.withDescription("Every dead event"), Flag.withDefault(false))
}

/** The values of the flags. */
export interface Chosen {
  readonly group: ReadonlyArray<string>
  readonly type: Option.Option<string>
  readonly aggregateType: Option.Option<string>
  readonly aggregateId: Option.Option<string>
  readonly id: ReadonlyArray<string>
  readonly all: boolean
}

export const read = ({ group, type, aggregateType, aggregateId, id, all }: Chosen): DeadEvents.Selection => ({
  ...(group.length === 0 ? {} : { groups: group }),
  ...Flags.given("eventType", type),
  ...Flags.given("aggregateType", aggregateType),
  ...Flags.given("aggregateId", aggregateId),
  ...(id.length === 0 ? {} : { eventIds: id }),
  ...(all ? { all } : {})
})

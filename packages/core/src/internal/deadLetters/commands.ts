/**
 * The operators' commands on the dead letter topic of a binding. The scheduled replay of its strategy shares them, so that both wait for each other.
 */
import { type Context, Effect } from "effect"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Defaults from "../../Defaults.ts"
import type { DeadLetters } from "../../Replay.ts"
import * as Groups from "../letters/groups.ts"
import * as LetterPages from "../letters/letterPages.ts"
import * as OneLetter from "../letters/oneLetter.ts"
import * as Rehearsal from "../letters/rehearsal.ts"
import * as TransformedLetters from "../letters/transformedLetters.ts"
import * as Arguments from "../replay/arguments.ts"
import * as Replay from "../replay/replay.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Depth from "./replayDepth.ts"
import * as Listing from "./replayListing.ts"
import * as Stats from "./replayStats.ts"

export interface DeadLetterCommands extends DeadLetters {
  readonly replayDue: Replay.Replays["replayDue"]
  /** Counts the dead letters that wait, for the gauge. */
  readonly countWaiting: (admin: Admin) => Effect.Effect<number, BrokerError>
}

/** `services` are those that the binding's layer for rehearsals may require. */
export const make = <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  hostname: string,
  services: Context.Context<R>
): DeadLetterCommands => {
  const { deadLetter, deadLetterTopic, groupId, adopts, topic, tiers, maxBufferedBytes } = definition
  const { maxReplays = Defaults.deadLetter.maxReplays, origins } = deadLetter.settings
  const target = { broker, groupId, adopts, deadLetterTopic, maxReplays, maxBufferedBytes }
  const replays = Replay.make({
    ...target,
    ...{ tiers, sourceTopic: topic, hostname },
    origins,
    ownsPosition: deadLetter._tag !== "Custom"
  })
  const listTarget = { ...target, ownFingerprint: deadLetter.settings.fingerprint }
  return {
    ...replays,
    countWaiting: Depth.make(target),
    discarded: Listing.discarded(target),
    restored: Listing.restored(target),
    stats: Stats.stats(target),
    groups: (options) => Groups.groups(listTarget, options),
    letters: (query) => LetterPages.page(listTarget, query),
    letter: (position) => OneLetter.letter(listTarget, definition.serdes, position),
    transforms: Array.from(definition.transforms.keys()),
    transformed: (positions, name) => TransformedLetters.transformed(listTarget, definition, positions, name),
    rehearse: (selection, options) =>
      Rehearsal.rehearse({ ...listTarget, definition, hostname, services }, selection, options),
    list: (page) => Listing.list(listTarget, page),
    purge: (beforeMillis, options) =>
      Effect.andThen(Arguments.time("purge", "beforeMillis", beforeMillis), Stats.purge(target, beforeMillis, options))
  }
}

/**
 * The operators' commands on the dead letter topic of a binding. The scheduled replay of its strategy shares them, so that both wait for each other.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Defaults from "../../Defaults.ts"
import type { DeadLetters } from "../../Replay.ts"
import * as Groups from "../letters/groups.ts"
import * as LetterPages from "../letters/letterPages.ts"
import type { LettersTarget } from "../letters/lettersTarget.ts"
import * as OneLetter from "../letters/oneLetter.ts"
import * as Rehearsal from "../letters/rehearsal.ts"
import * as TransformedLetters from "../letters/transformedLetters.ts"
import * as Arguments from "../replay/arguments.ts"
import * as PerKeyReplays from "../replay/perKeyReplays.ts"
import * as Replay from "../replay/replay.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Depth from "./replayDepth.ts"
import * as Listing from "./replayListing.ts"
import * as Stats from "./replayStats.ts"

/** Of one dead letter topic. */
export interface DeadLetterCommands extends Omit<DeadLetters, "ofTopic"> {
  readonly replayDue: Replay.Replays["replayDue"]
  /** Counts the dead letters that wait, for the gauge. */
  readonly countWaiting: (admin: Admin) => Effect.Effect<number, BrokerError>
}

const targetOf = (
  { deadLetter, deadLetterTopic, groupId, adopts, maxBufferedBytes }: BindingDefinition<unknown>,
  broker: Broker["Service"]
) => {
  const { maxReplays = Defaults.deadLetter.maxReplays } = deadLetter.settings
  return { broker, groupId, adopts, deadLetterTopic, maxReplays, maxBufferedBytes }
}

/** The dead letter topic as lists read it. Of a binding of several topics they say which one a letter is of. */
export const listTarget = (definition: BindingDefinition<unknown>, broker: Broker["Service"]): LettersTarget => ({
  ...targetOf(definition, broker),
  ownFingerprint: definition.deadLetter.settings.fingerprint,
  sourceTopic: definition.otherSources.length === 0 ? undefined : definition.topic
})

/** `services` are those that the binding's layer for rehearsals may require. */
export const make = <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  hostname: string,
  services: Context.Context<R>
): DeadLetterCommands => {
  const { deadLetter, topic, tiers } = definition
  const { origins } = deadLetter.settings
  const target = targetOf(definition, broker)
  const replays = Replay.make({
    ...target,
    ...{ tiers, sourceTopic: topic, hostname },
    origins,
    ownsPosition: deadLetter._tag !== "Custom"
  })
  const list = listTarget(definition, broker)
  return {
    ...replays,
    replayToTier: PerKeyReplays.toTier(definition, replays.replayToTier),
    countWaiting: Depth.make(target),
    discarded: Listing.discarded(target),
    restored: Listing.restored(target),
    stats: Stats.stats(target),
    groups: (options) => Groups.groups(list, options),
    letters: (query) => LetterPages.page([list], query),
    letter: (position) => OneLetter.letter(list, definition.serdes, position),
    transforms: Array.from(definition.transforms.keys()),
    transformed: (positions, name) => TransformedLetters.transformed(list, definition, positions, name),
    rehearse: (selection, options) =>
      Rehearsal.rehearse({ ...list, definition, hostname, services }, selection, options),
    list: (page) => Listing.list(list, page),
    purge: (beforeMillis, options) =>
      Effect.andThen(Arguments.time("purge", "beforeMillis", beforeMillis), Stats.purge(target, beforeMillis, options))
  }
}

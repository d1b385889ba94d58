/** Checks everything that operators give to the commands of a fleet, before the cluster is asked. */
import { Effect } from "effect"
import * as Choices from "../../Choices.ts"
import * as Defaults from "../../Defaults.ts"
import type { CommandRequest, CommandTarget, HoldRequest, HoldTarget } from "../../FleetView.ts"
import { verbs } from "../../FleetView.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import { InvalidArgument } from "../../Replay.ts"
import { toMillis } from "../base/durations.ts"
import { isObject, read } from "../base/properties.ts"
import * as RunMark from "../record/runMark.ts"
import * as Arguments from "../replay/arguments.ts"
import type { CommandEntry } from "./commandEntries.ts"
import type { Address } from "./holdEntries.ts"

const tier = Kinds.make("the number of a tier, from 1", (value) => Number.isSafeInteger(value) && Number(value) >= 1)
const text = Kinds.make(
  `a text of 1 to ${Arguments.longestText} characters`,
  (value) => typeof value === "string" && value.trim() !== "" && value.length <= Arguments.longestText
)
const time = Kinds.make("epoch milliseconds", (value) => Number.isFinite(value))

const addressKinds = { binding: Kinds.name, groupId: Kinds.name, cluster: Kinds.name, tier }

const checked = (
  command: string,
  given: unknown,
  kinds: Readonly<Record<string, Ranges.Kind | Ranges.Range>>,
  required: ReadonlyArray<string>
): Effect.Effect<void, InvalidArgument> => {
  const missing = isObject(given) ? required.filter((name) => read(given, name) === undefined) : []
  const issues = [
    ...Ranges.problemsOfAll(given, kinds),
    ...missing.map((path) => ({ path, found: "undefined", allowed: "a value: it may not be absent" }))
  ]
  const [issue] = issues
  return issue === undefined
    ? Effect.void
    : Effect.fail(new InvalidArgument({ command, argument: issue.path, given: issue.found, expected: issue.allowed }))
}

export const address = (command: string, given: HoldTarget): Effect.Effect<Address, InvalidArgument> =>
  Effect.map(checked(command, given, addressKinds, ["binding", "groupId"]), () => ({
    ...{ binding: given.binding, groupId: given.groupId, cluster: given.cluster ?? Defaults.binding.cluster },
    tier: given.tier
  }))

export const hold = (given: HoldRequest): Effect.Effect<Address, InvalidArgument> =>
  Effect.andThen(checked("hold", given, { reason: text, by: text, until: time }, ["reason"]), address("hold", given))

const target = Kinds.make(
  "'all', or an object with one of group, host and process",
  (value) =>
    value === "all" ||
    (isObject(value) &&
      Object.keys(value).length === 1 &&
      ["group", "host", "process"].some((name) => typeof read(value, name) === "string"))
)
const id = Kinds.make("a UUID in small letters", RunMark.isRunId)

const commandKinds = {
  verb: Kinds.oneOf(verbs),
  ...{ binding: Kinds.name, tier, target, reason: text, by: text, id },
  ...Ranges.fleetCommand
}

/** A command with its defaults. */
export interface Command {
  readonly entry: CommandEntry
  readonly waitMillis: number
}

export const command = (given: CommandRequest, hostname: string): Effect.Effect<Command, InvalidArgument> =>
  Effect.gen(function* () {
    yield* checked("command", given, commandKinds, ["verb", "reason"])
    const { verb, binding, tier, target = "all", reason, by = hostname } = given
    const { expiresAfter = Defaults.fleet.expiresAfterMillis, wait = Defaults.fleet.waitMillis } = given
    if (tier !== undefined && verb !== "pause" && verb !== "resume") {
      return yield* Arguments.refuse("command", "tier", tier, `nothing: ${verb} is for whole bindings`)
    }
    const entry: CommandEntry = {
      ...{ verb, target: target === "all" ? {} : targetOf(target), by, reason, expiresAfter: toMillis(expiresAfter) },
      ...(binding === undefined ? {} : { binding }),
      ...(tier === undefined ? {} : { tier })
    }
    return { entry, waitMillis: toMillis(wait) }
  })

const targetOf = (given: Exclude<CommandTarget, "all">): CommandEntry["target"] => ({ ...given })

/** The settings of `Fleet.layer`. */
export const settingKinds = (topic: Ranges.Kind): Readonly<Record<string, Ranges.Kind | Ranges.Range>> => ({
  ...{ controlTopic: topic, fleetTopic: topic, cluster: Kinds.name, version: Kinds.string },
  onControlUnavailable: Kinds.oneOf(Choices.fleet.onControlUnavailable),
  ...Ranges.fleet
})

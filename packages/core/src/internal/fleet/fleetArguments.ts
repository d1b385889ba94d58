/** Checks everything that operators give to the commands of a fleet, before the cluster is asked. */
import * as Effect from "effect/Effect"
import * as Choices from "../../Choices.ts"
import * as Defaults from "../../Defaults.ts"
import type { CommandRequest, CommandTarget, Hold, HoldRequest, HoldTarget, ReleaseRequest } from "../../FleetView.ts"
import { verbs } from "../../FleetView.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import { InvalidArgument } from "../../Replay.ts"
import type { Time } from "../../Time.ts"
import { toMillis } from "../base/durations.ts"
import { lastMillis } from "../base/isoText.ts"
import { isObject, read, taken } from "../base/properties.ts"
import * as RunMark from "../record/runMark.ts"
import * as Arguments from "../replay/arguments.ts"
import type { CommandEntry } from "./commandEntries.ts"
import type { Address } from "./holdKeys.ts"

const tier = Kinds.make("the number of a tier, from 1", (value) => Number.isSafeInteger(value) && Number(value) >= 1)
const text = Kinds.make(
  `a text of 1 to ${Arguments.longestText} characters`,
  (value) => typeof value === "string" && value.trim() !== "" && value.length <= Arguments.longestText
)
const time = Kinds.make(
  `epoch milliseconds, at most ${lastMillis}`,
  (value) => Number.isFinite(value) && Math.abs(value as number) <= lastMillis
)

const addressKinds = { binding: Kinds.name, groupId: Kinds.name, cluster: Kinds.name, tier }

/** Answers a copy of what is given, which is read once. */
const checked = <A extends object>(
  command: string,
  given: A,
  kinds: Readonly<Record<string, Ranges.Kind | Ranges.Range>>,
  required: ReadonlyArray<string>
): Effect.Effect<A, InvalidArgument> => {
  const once = isObject(given) ? taken(given, Object.keys(kinds)) : given
  const missing = isObject(once) ? required.filter((name) => read(once, name) === undefined) : []
  const issues = [
    ...Ranges.problemsOfAll(once, kinds),
    ...missing.map((path) => ({ path, found: "undefined", allowed: "a value: it may not be absent" }))
  ]
  const [issue] = issues
  return issue === undefined
    ? Effect.succeed(once)
    : Effect.fail(new InvalidArgument({ command, argument: issue.path, given: issue.found, expected: issue.allowed }))
}

const address = (command: string, given: HoldTarget): Effect.Effect<Address, InvalidArgument> =>
  Effect.map(checked(command, given, addressKinds, ["binding", "groupId"]), addressOf)

const addressOf = ({ binding, groupId, cluster = Defaults.binding.cluster, tier }: HoldTarget): Address => ({
  ...{ binding, groupId, cluster },
  tier
})

/** A hold with its defaults. */
export interface GivenHold extends Pick<Hold, "by" | "reason" | "untilMillis"> {
  readonly address: Address
}

export const hold = (given: HoldRequest, hostname: string): Effect.Effect<GivenHold, InvalidArgument> =>
  Effect.map(
    checked("hold", given, { ...addressKinds, reason: text, by: text, until: time }, ["binding", "groupId", "reason"]),
    ({ reason, by = hostname, until, ...target }) => ({ address: addressOf(target), by, reason, untilMillis: until })
  )

const targetNames = ["group", "host", "process"]

export const release = (
  given: ReleaseRequest,
  hostname: string
): Effect.Effect<Pick<GivenHold, "address" | "by" | "reason">, InvalidArgument> =>
  Effect.map(
    checked("release", given, { ...addressKinds, reason: text, by: text }, ["binding", "groupId", "reason"]),
    ({ reason, by = hostname, ...target }) => ({ address: addressOf(target), by, reason })
  )

/** The address, and the wait in milliseconds. */
export const applied = (
  given: HoldTarget,
  wait: Time = Defaults.fleet.waitMillis
): Effect.Effect<readonly [address: Address, waitMillis: number], InvalidArgument> =>
  Effect.andThen(
    checked("applied", { wait }, { wait: Ranges.fleetCommand.wait }, []),
    Effect.map(address("applied", given), (found) => [found, toMillis(wait)] as const)
  )

const target = Kinds.make(
  "'all', or an object with one of group, host and process",
  (value) =>
    value === "all" ||
    (isObject(value) &&
      Object.keys(value).length === 1 &&
      targetNames.some((name) => typeof read(value, name) === "string"))
)
const id = Kinds.make("a UUID in small letters", RunMark.isRunId)

const commandKinds = {
  verb: Kinds.oneOf(verbs),
  ...{ binding: Kinds.name, tier, target, reason: text, by: text, id },
  ...Ranges.fleetCommand
}

/** A command with its defaults. */
export interface Command {
  readonly id: string | undefined
  readonly entry: CommandEntry
  readonly waitMillis: number
}

export const command = (given: CommandRequest, hostname: string): Effect.Effect<Command, InvalidArgument> =>
  Effect.gen(function* () {
    const once = yield* checked("command", given, commandKinds, ["verb", "reason"])
    const { verb, binding, tier, target = "all", reason, by = hostname } = once
    const { expiresAfter = Defaults.fleet.expiresAfterMillis, wait = Defaults.fleet.waitMillis } = once
    if (tier !== undefined && verb !== "pause" && verb !== "resume") {
      return yield* Arguments.refuse("command", "tier", tier, `nothing: ${verb} is for whole bindings`)
    }
    const entry: CommandEntry = {
      ...{ verb, target: target === "all" ? {} : targetOf(target), by, reason, expiresAfter: toMillis(expiresAfter) },
      ...(binding === undefined ? {} : { binding }),
      ...(tier === undefined ? {} : { tier })
    }
    return { id: once.id, entry, waitMillis: toMillis(wait) }
  })

const targetOf = (given: Exclude<CommandTarget, "all">): CommandEntry["target"] =>
  taken<CommandEntry["target"]>(given, targetNames)

const longestVersion = 256

/** It stands in each heartbeat, which has a bound. */
const version = Kinds.make(
  `a text of at most ${longestVersion} characters`,
  (value) => typeof value === "string" && value.length <= longestVersion
)

/** The settings of `Fleet.layer`. */
export const settingKinds = (topic: Ranges.Kind): Readonly<Record<string, Ranges.Kind | Ranges.Range>> => ({
  ...{ controlTopic: topic, fleetTopic: topic, cluster: Kinds.name, version },
  onControlUnavailable: Kinds.oneOf(Choices.fleet.onControlUnavailable),
  ...Ranges.fleet
})

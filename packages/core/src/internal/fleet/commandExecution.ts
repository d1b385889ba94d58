/**
 * Obeys a command in one process: decides whether it is for it, whether it is in time and understood, runs it on each binding that it names, and answers.
 */
import * as Effect from "effect/Effect"
import { AmbiguousBinding } from "../../EventBusError.ts"
import { type Verb, verbs } from "../../FleetView.ts"
import type { BindingSnapshot } from "../../Snapshot.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import type { AckEntry } from "./ackEntries.ts"
import * as Commands from "./commandEntries.ts"
import type { FleetMember } from "./fleetMember.ts"

/** The process that a command reaches. */
export interface Obeying {
  readonly id: string
  readonly host: string
  readonly members: () => ReadonlyArray<FleetMember>
  /** By the cluster's clock. */
  readonly nowMillis: () => number
}

export type Ack = Omit<AckEntry, "host">

type Answering = (ack: Ack) => Effect.Effect<void>

/** Gives no answer to a command for another process. */
export const run = (process: Obeying, command: Commands.ReadCommand, answer: Answering): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { decoded, appendedMillis } = command
    if (decoded._tag === "Malformed")
      return answer(refused("the control topic has an entry for it that cannot be read"))
    if (decoded._tag === "Newer") return answer(unsupported(`format ${decoded.v}`))
    const { entry } = decoded
    if (!Commands.isFor(entry, process)) return Effect.void
    const verb = verbs.find((each) => each === entry.verb)
    if (verb === undefined) return answer(unsupported(`verb '${entry.verb}'`))
    if (entry.tier !== undefined && verb !== "pause" && verb !== "resume") {
      return answer(refused(`${verb} is for whole bindings, and the command names tier ${entry.tier}`))
    }
    if (appendedMillis === undefined) {
      return answer(
        refused(
          "the control topic keeps the times of its writers (message.timestamp.type), so nobody knows whether it has expired"
        )
      )
    }
    if (process.nowMillis() - appendedMillis > entry.expiresAfter) return answer({ state: "expired", bindings: 0 })
    const named = membersOf(process, entry)
    const [ambiguous] = ambiguities(entry, named)
    if (ambiguous !== undefined) return answer(refused(ambiguous))
    // A fleet topic that cannot be written holds up the answers alone.
    const accepted = answer({ state: "accepted", bindings: named.length })
    return Effect.flatMap(
      Effect.zipWith(onEach(named, verb, entry.tier), accepted, (ack) => ack, { concurrent: true }),
      answer
    )
  })

const refused = (error: string): Ack => ({ state: "refused", bindings: 0, error })

const unsupported = (error: string): Ack => ({ state: "unsupported-version", bindings: 0, error })

const membersOf = ({ members }: Obeying, { binding, target }: Commands.CommandEntry): ReadonlyArray<FleetMember> =>
  members().filter(
    ({ definition }) =>
      (target.group === undefined || definition.groupId === target.group) &&
      (binding === undefined || binding === definition.name || binding === BindingKey.of(definition))
  )

/** A name alone must not reach bindings of two clusters. */
const ambiguities = ({ binding }: Commands.CommandEntry, named: ReadonlyArray<FleetMember>): ReadonlyArray<string> =>
  binding === undefined || named.length < 2
    ? []
    : [new AmbiguousBinding({ binding, keys: named.map(({ definition }) => BindingKey.of(definition)) }).message]

const onEach = Effect.fnUntraced(function* (
  named: ReadonlyArray<FleetMember>,
  verb: Verb,
  tier: number | undefined
): Effect.fn.Return<Ack> {
  const failures = yield* Effect.forEach(named, (member) => onOne(member, verb, tier), { concurrency: "unbounded" })
  const errors = failures.flatMap((error) => error ?? [])
  const bindings = named.length
  return errors.length === 0
    ? { state: "done", bindings }
    : { state: "refused", bindings, error: errors.join(" ").slice(0, longestError) }
})

/** The answers of many processes stay small. */
const longestError = 4_000

/** Answers why it could not be done; undefined when it is done, or was so already. */
const onOne = Effect.fnUntraced(function* (
  member: FleetMember,
  verb: Verb,
  tier: number | undefined
): Effect.fn.Return<string | undefined> {
  if (isSo(yield* member.snapshot, verb, tier)) return undefined
  return yield* commandOf(member, verb, tier).pipe(
    Effect.as(undefined),
    Effect.catch((error) => Effect.succeed(error.message))
  )
})

const commandOf = (member: FleetMember, verb: Verb, tier: number | undefined) => {
  if (tier !== undefined && verb === "pause") return member.pauseTier(tier)
  if (tier !== undefined && verb === "resume") return member.resumeTier(tier)
  return member[verb]
}

/** Whether nothing is left to do. A tier that a hold pauses is left to the command, whose error says who holds it. */
const isSo = (snapshot: BindingSnapshot, verb: Verb, tier: number | undefined): boolean => {
  const { state, pausedBy, pausedTiers, containers } = snapshot
  const isStarted = state === "RUNNING" || state === "PAUSED"
  switch (verb) {
    case "start":
      return isStarted
    case "stop":
      return !isStarted
    case "pause":
      return tier === undefined ? pausedBy.includes("operator") : pausedTiers.includes(tier)
    case "resume":
      return tier === undefined
        ? state === "RUNNING"
        : containers.some((container) => container.tier === tier && container.state === "RUNNING")
  }
}

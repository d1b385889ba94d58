/**
 * The control topic as it is read: the holds by now, and the commands as they come.
 *
 * A topic that is deleted takes no hold with it: each stays until the topic, made again, has a newer entry for it, or a tombstone.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Release } from "../../FleetView.ts"
import * as Format from "../base/entryFormat.ts"
import * as JournalTail from "../replay/journalTail.ts"
import * as LeaseEntries from "../replay/leaseEntries.ts"
import type { ClusterClock } from "./clusterClock.ts"
import * as Commands from "./commandEntries.ts"
import * as Holds from "./holdEntries.ts"
import * as Releases from "./releaseEntries.ts"

export interface Control {
  /** By their keys. */
  readonly holds: ReadonlyMap<string, Holds.ReadHold>
  /** The last release of each target, by their keys. */
  readonly releases: ReadonlyMap<string, Release>
  /** By their ids. */
  readonly commands: ReadonlyMap<string, Commands.ReadCommand>
  /** Rises with each change of a hold. */
  readonly revision: () => number
  /** The offset of the newest record that was read; undefined before the first. A topic that was made again begins anew. */
  readonly newest: () => bigint | undefined
  /** Reads to the end of the topic, and at least past the offset `least`. */
  readonly readOn: (least?: bigint) => Effect.Effect<void, BrokerError>
}

/** Told of a command, as often as the topic has it. `isRepeated`: the topic had one with this id before. */
export type OnCommand = (command: Commands.ReadCommand, isRepeated: boolean) => void

/** Opens the topic. Nothing is read yet. */
export const open = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  clock: ClusterClock,
  onCommand: OnCommand = () => {}
): Effect.fn.Return<Control, BrokerError, Scope.Scope> {
  const holds = new Map<string, Holds.ReadHold>()
  const commands = new Map<string, Commands.ReadCommand>()
  const releases = new Map<string, Release>()
  let revision = 0
  let newest: bigint | undefined
  const accept = (record: ConsumerRecord): void => {
    clock.atLeast(LeaseEntries.appendedMillisOf(record))
    newest = record.offset
    const key = Format.textOf(record.key)
    if (Holds.apply(holds, key, record)) {
      revision++
      return
    }
    Releases.apply(releases, key, record)
    const ended = Commands.endedId(key, record)
    if (ended !== undefined) commands.delete(ended)
    const command = Commands.read(key, record)
    if (command === undefined) return
    const isRepeated = commands.has(command.id)
    if (!isRepeated) commands.set(command.id, command)
    onCommand(command, isRepeated)
  }
  const { toEnd } = yield* JournalTail.open(broker, topic, "read_uncommitted", accept)
  return { holds, releases, commands, revision: () => revision, newest: () => newest, readOn: toEnd }
})

/**
 * The control topic as it is read: the holds by now, and the commands as they come.
 *
 * A topic that is deleted takes no hold with it: each stays until the topic, made again, has a newer entry for it, or a tombstone.
 */
import { Effect, type Scope } from "effect"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as JournalTail from "../replay/journalTail.ts"
import * as LeaseEntries from "../replay/leaseEntries.ts"
import type { ClusterClock } from "./clusterClock.ts"
import * as Commands from "./commandEntries.ts"
import * as Format from "./fleetFormat.ts"
import * as Holds from "./holdEntries.ts"

export interface Control {
  /** By their keys. */
  readonly holds: ReadonlyMap<string, Holds.ReadHold>
  /** By their ids. */
  readonly commands: ReadonlyMap<string, Commands.ReadCommand>
  /** Rises with each change of a hold. */
  readonly revision: () => number
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
  let revision = 0
  const accept = (record: ConsumerRecord): void => {
    clock.atLeast(LeaseEntries.appendedMillisOf(record))
    const key = Format.textOf(record.key)
    if (Holds.apply(holds, key, record)) {
      revision++
      return
    }
    const ended = Commands.endedId(key, record)
    if (ended !== undefined) commands.delete(ended)
    const command = Commands.read(key, record)
    if (command === undefined) return
    const isRepeated = commands.has(command.id)
    if (!isRepeated) commands.set(command.id, command)
    onCommand(command, isRepeated)
  }
  const { toEnd } = yield* JournalTail.open(broker, topic, "read_uncommitted", accept)
  return { holds, commands, revision: () => revision, readOn: toEnd }
})

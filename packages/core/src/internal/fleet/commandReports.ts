/** How a command stands: who was asked, who has answered, and who is missing. */
import type { CommandReport, FleetProcess } from "../../FleetView.ts"
import type { AckEntry } from "./ackEntries.ts"
import * as Commands from "./commandEntries.ts"

/** The live processes that a command is for. A process whose heartbeat cannot be read may be on any host. */
export const asked = (
  processes: ReadonlyArray<FleetProcess>,
  command: Commands.CommandEntry
): ReadonlyArray<FleetProcess> =>
  processes.filter(
    ({ id, host, status, isReadable }) =>
      status === "live" && Commands.isFor(command, { id, host: isReadable ? host : undefined })
  )

/** The report by now. Processes that have begun to live since the command was given may answer, too. */
export const of = (
  id: string,
  asked: ReadonlyArray<FleetProcess>,
  acks: ReadonlyMap<string, AckEntry> = new Map()
): CommandReport => {
  const isFinal = (ack: AckEntry | undefined): ack is AckEntry => ack !== undefined && ack.state !== "accepted"
  return {
    id,
    answers: Array.from(acks)
      .filter(([, ack]) => isFinal(ack))
      .map(([process, { state, host, bindings, error }]) => ({ process, host, state, bindings, error })),
    missing: asked
      .filter(({ id: process }) => !isFinal(acks.get(process)))
      .map(({ id: process, host, pid }) => ({ process, host, pid, accepted: acks.has(process) }))
  }
}

/** Whether a command of the topic is the one that is given again. */
export const isSame = (
  { decoded }: Commands.ReadCommand,
  { verb, binding, tier, target }: Commands.CommandEntry
): boolean =>
  decoded._tag === "Entry" &&
  decoded.entry.verb === verb &&
  decoded.entry.binding === binding &&
  decoded.entry.tier === tier &&
  JSON.stringify(decoded.entry.target) === JSON.stringify(target)

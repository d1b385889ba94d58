/** How far the newest holds have come: which processes obey them, and which do not yet. */
import type { FleetBinding, FleetProcess, ProcessAnswers } from "../../FleetView.ts"
import type { ReadHeartbeat } from "./fleetLog.ts"
import type { Address } from "./holdKeys.ts"

/** The report by now. A process obeys when its heartbeat says that it has applied the control topic up to the offset `newest`. */
export const of = (
  address: Address,
  newest: bigint | undefined,
  processes: ReadonlyArray<FleetProcess>,
  heartbeats: ReadonlyMap<string, ReadHeartbeat>
): ProcessAnswers => {
  const asked = processes.filter((process) => process.status === "live" && mayHave(process, address))
  const obeys = ({ id }: FleetProcess) => newest === undefined || (obeysOf(heartbeats.get(id)) ?? -1n) >= newest
  return {
    answers: asked.filter(obeys).map(({ id: process, host, bindings }) => ({
      ...{ process, host, state: "done", error: undefined },
      bindings: bindings.filter((binding) => isOf(binding, address)).length
    })),
    missing: asked
      .filter((process) => !obeys(process))
      .map(({ id: process, host, pid }) => ({ process, host, pid, accepted: false }))
  }
}

const obeysOf = (heartbeat: ReadHeartbeat | undefined): bigint | undefined => {
  const text = heartbeat?.decoded._tag === "Entry" ? heartbeat.decoded.entry.obeys : undefined
  return text !== undefined && /^\d{1,19}$/.test(text) ? BigInt(text) : undefined
}

/** A heartbeat that cannot be read, or has no room for all bindings, may be that of a process with the binding. */
const mayHave = ({ isReadable, omitted, bindings }: FleetProcess, address: Address): boolean =>
  !isReadable || omitted > 0 || bindings.some((binding) => isOf(binding, address))

const isOf = ({ name, cluster, groupId }: FleetBinding, address: Address): boolean =>
  name === address.binding && cluster === address.cluster && groupId === address.groupId

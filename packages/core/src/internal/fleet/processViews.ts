/** The processes of a fleet at one moment, as their last heartbeats tell. Append times alone say which of them live. */
import type { FleetProcess } from "../../FleetView.ts"
import type { ReadHeartbeat } from "./fleetLog.ts"

/** A process that is silent for longer is stale. */
export const leaseMillis = 15_000

/** A stale process is gone after so long, by the times of records: a wrong clock must not hide a process. */
const goneMillis = 3_600_000

/** A wall clock that differs by more is flagged. */
const skewedMillis = 2_000

/** By host and id. */
export const of = (
  heartbeats: ReadonlyMap<string, ReadHeartbeat>,
  nowMillis: number,
  provenMillis = nowMillis
): ReadonlyArray<FleetProcess> =>
  Array.from(heartbeats)
    .filter(([, { atMillis }]) => provenMillis - atMillis <= goneMillis)
    .map(([id, heartbeat]) => ofOne(id, heartbeat, nowMillis))
    .sort((one, other) => one.host.localeCompare(other.host) || one.id.localeCompare(other.id))

/** A heartbeat that this version cannot read. */
const unreadable = {
  ...{ host: "", pid: 0, version: "", isReadable: false, configHash: "", control: "", bindings: [], omitted: 0 },
  ...{ skewMillis: 0, isSkewed: false }
} as const

const ofOne = (id: string, { decoded, atMillis }: ReadHeartbeat, nowMillis: number): FleetProcess => {
  const status = nowMillis - atMillis > leaseMillis ? "stale" : "live"
  const seen = { id, status, lastSeenMillis: atMillis, leaseEndsMillis: atMillis + leaseMillis } as const
  if (decoded._tag !== "Entry") {
    const protocol = decoded._tag === "Newer" ? decoded.v : 0
    return { ...seen, ...unreadable, protocol }
  }
  const { host, pid, version, configHash, sentAt, control, bindings, omitted } = decoded.entry
  const skewMillis = sentAt - atMillis
  return {
    ...{ ...seen, host, pid, version, protocol: decoded.v, isReadable: true, configHash, control, bindings, omitted },
    ...{ skewMillis, isSkewed: Math.abs(skewMillis) > skewedMillis }
  }
}

/**
 * Applies one entry of a history to a ledger.
 */
import { applyConnectorEvent } from "./connectorEvents.ts"
import type { Entry } from "./History.ts"
import type { Ledger } from "./Ledger.ts"

export const applyEntry = (ledger: Ledger, entry: Entry): void => {
  switch (entry._tag) {
    case "Published":
      ledger.logs.publish(entry)
      return
    case "LogEnd":
      ledger.logs.ends.set(entry.partition, entry.logEnd)
      return
    case "Compacted":
      for (const offset of entry.offsets) ledger.logs.remove(entry.partition, offset, "compaction")
      return
    case "Truncated":
      for (const offset of ledger.logs.byPartition.get(entry.partition)?.keys() ?? []) {
        if (offset < entry.before) ledger.logs.remove(entry.partition, offset, "retention")
      }
      return
    case "ProcessStarted":
    case "ProcessStopping":
    case "ProcessStopped":
    case "ProcessKilled":
    case "Paused":
    case "Resumed":
      applyOperation(ledger, entry)
      return
    case "Called":
      ledger.call(entry)
      return
    case "Returned":
      ledger.returned(entry)
      return
    case "CommitSent":
    case "CommitAccepted":
    case "CommitFailed":
      applyCommit(ledger, entry)
      return
    case "Sent":
      ledger.sources.sent(entry.process, entry.copy, entry.number)
      return
    case "SendFailed":
      ledger.sources.failed(entry.process, entry.number)
      return
    case "Stored":
      for (const copy of entry.copies) ledger.logs.store(entry.partition, copy, entry.atMillis)
      return
    case "Discarded":
      ledger.logs.letters.discard(entry.letters)
      return
    case "ReplayEnded":
      ledger.logs.letters.report(entry.binding, entry.replayed ?? 0)
      return
    case "Observed":
      ledger.observed.set(entry.binding, entry.outputs)
      return
    case "Broker":
      ledger.broker(entry)
      return
    case "Connector":
      applyConnectorEvent(ledger, entry)
      return
  }
}

type Commit = Extract<Entry, { readonly _tag: "CommitSent" | "CommitAccepted" | "CommitFailed" }>

/** Counts a request of a committer. A committer has one fiber, and one request on its way. */
const applyCommit = (ledger: Ledger, { _tag, process, groupId, atMillis, fiber }: Commit): void => {
  const traffic = ledger.trafficOf(process, groupId)
  if (_tag === "CommitSent") {
    traffic.inFlight++
    traffic.sentMillis.set(fiber, atMillis)
    return
  }
  traffic.inFlight--
  if (_tag === "CommitFailed") traffic.lastFailureMillis = atMillis
  const sentMillis = traffic.sentMillis.get(fiber)
  traffic.sentMillis.delete(fiber)
  if (sentMillis !== undefined && ledger.stopping.has(process))
    traffic.answeredInStop.push({ sentMillis, answeredMillis: atMillis })
}

type Operation = Extract<
  Entry,
  { readonly _tag: "ProcessStarted" | "ProcessStopping" | "ProcessStopped" | "ProcessKilled" | "Paused" | "Resumed" }
>

/** Applies what an operator did to a process. */
const applyOperation = (ledger: Ledger, entry: Operation): void => {
  switch (entry._tag) {
    case "ProcessStarted":
      ledger.members.started(entry.process)
      return
    case "ProcessStopping":
      ledger.stop(entry.process, entry.atMillis)
      return
    case "ProcessStopped":
      ledger.stopped.add(entry.process)
      return
    case "ProcessKilled":
      ledger.kill(entry.process)
      return
    case "Paused":
      ledger.paused.add(`${entry.process} ${entry.binding}`)
      return
    case "Resumed":
      ledger.paused.delete(`${entry.process} ${entry.binding}`)
      ledger.breakers.resumed(entry)
      return
  }
}

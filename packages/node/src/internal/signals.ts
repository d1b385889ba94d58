/**
 * Signals that stop the buses of this process. All buses share one listener for each signal: the process ends by the signal when the last of them has stopped.
 */
import { constants } from "node:os"

type Stop = () => Promise<void>

interface Listening {
  readonly stops: Set<Stop>
  readonly listener: () => void
}

/** The signals that buses wait for now. The process has each signal once, so there is one map for all buses. */
const waiting = new Map<NodeJS.Signals, Listening>()

/** Calls `stop` at the first of the signals. Answers how to end that. */
export const onSignals = (signals: ReadonlyArray<NodeJS.Signals>, stop: Stop): (() => void) => {
  for (const signal of signals) (waiting.get(signal) ?? listen(signal)).stops.add(stop)
  return () => {
    for (const signal of signals) forget(signal, stop)
  }
}

const listen = (signal: NodeJS.Signals): Listening => {
  const stops = new Set<Stop>()
  const listening = { stops, listener: () => void stopAll(signal, stops) }
  waiting.set(signal, listening)
  process.once(signal, listening.listener)
  return listening
}

const forget = (signal: NodeJS.Signals, stop: Stop): void => {
  const listening = waiting.get(signal)
  if (listening === undefined || !listening.stops.delete(stop) || listening.stops.size > 0) return
  waiting.delete(signal)
  process.removeListener(signal, listening.listener)
}

/** No signal is waited for any longer: the next one, of whatever name, ends the process as it does without a bus. */
const stopAll = async (signal: NodeJS.Signals, stops: ReadonlySet<Stop>): Promise<void> => {
  const all = Array.from(stops)
  const names = Array.from(waiting.keys())
  for (const each of names) for (const stop of all) forget(each, stop)
  const forgetSecond = endsAtSecond(names)
  await Promise.allSettled(all.map((stop) => stop()))
  forgetSecond()
  // A program that listens as well decides itself when it ends.
  if (process.listenerCount(signal) === 0) endBy(signal)
}

/** The kernel takes no signal without a listener to process 1, as in a container without an init: that process has to end itself, with the code that a shell shows for the signal. */
const endBy = (signal: NodeJS.Signals): void => {
  if (process.pid === 1) process.exit(128 + constants.signals[signal])
  process.kill(process.pid, signal)
}

/** Process 1 needs a listener for the second signal, too. */
const endsAtSecond = (names: ReadonlyArray<NodeJS.Signals>): (() => void) => {
  const own = process.pid === 1 ? names.filter((name) => process.listenerCount(name) === 0) : []
  const listeners = own.map((name) => [name, () => endBy(name)] as const)
  for (const [name, listener] of listeners) process.once(name, listener)
  return () => {
    for (const [name, listener] of listeners) process.removeListener(name, listener)
  }
}

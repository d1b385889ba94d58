/** The states of all bindings, by the stream of the API; by asking again and again where no stream comes. */
import type { BindingSummary, State } from "../../src/Answers.ts"
import { get, open, Refusal, refusalOf } from "./api.ts"

/** The states as they are known, and how. */
export interface Live {
  readonly state?: State
  /** `stream`, `polling`, or `lost`: nobody answers, and `state` is the last one that was known. */
  readonly by: "stream" | "polling" | "lost"
  /** Why there is no state, or no newer one. */
  readonly refusal?: Refusal
}

const pollMillis = 3_000
/** Two heartbeats, and some more. */
const silenceMillis = 40_000
/** A proxy that keeps the stream back does so from the first event on. */
const firstEventMillis = 5_000
/** A program that closes ends every stream soon. */
const livedMillis = 10_000
/** How often a stream is tried again while polling. */
const pollsUntilStream = 10
/** Points of a lag chart: one for each state that came with a lag. */
const mostPoints = 120

const listeners = new Set<(live: Live) => void>()
const known = new Map<string, BindingSummary>()
const lags = new Map<string, Array<number>>()
let live: Live = { by: "polling" }
let lastId = ""

const tell = (next: Live): void => {
  live = next
  for (const listener of [...listeners]) listener(next)
}

const received = (state: State, by: "stream" | "polling"): void => {
  for (const { key, lag } of state.bindings) if (lag !== undefined) pointed(key, lag)
  tell({ state: { ...state, bindings: state.bindings.map(sameAsBefore) }, by })
}

const pointed = (key: string, lag: number): void => {
  const points = lags.get(key)
  if (points === undefined) lags.set(key, [lag])
  else if (points.push(lag) > mostPoints) points.shift()
}

/** The binding as it was, where nothing of it has changed: then its row is not drawn again. */
const sameAsBefore = (binding: BindingSummary): BindingSummary => {
  const before = known.get(binding.key)
  if (before !== undefined && isSame(before, binding)) return before
  known.set(binding.key, binding)
  return binding
}

/** Compares values of JSON, and leaves nothing to collect behind it: a state has hundreds of bindings. */
const isSame = (one: unknown, other: unknown): boolean => {
  if (one === other) return true
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false
  const [left, right] = [one as Readonly<Record<string, unknown>>, other as Readonly<Record<string, unknown>>]
  let members = 0
  for (const name in left) {
    if (!isSame(left[name], right[name])) return false
    members++
  }
  for (const _ in right) members--
  return members === 0
}

export const current = (): Live => live

/** The lag of a binding at the last states that came, the oldest first. */
export const lagsOf = (key: string): ReadonlyArray<number> => lags.get(key) ?? []

/** Calls the listener with each new state, until the answered function is called. */
export const subscribe = (listener: (live: Live) => void): (() => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** The fields of an event. */
const fieldsOf = (event: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    event.split("\n").flatMap((line) => {
      const [, name, value] = /^(id|event|data): (.*)$/.exec(line) ?? []
      return name === undefined || value === undefined ? [] : [[name, value]]
    })
  )

/** Reads until the stream ends or is silent. True when it has lived for a while: then another one follows at once. */
const stream = async (outer: AbortSignal): Promise<boolean> => {
  const silence = new AbortController()
  const stop = () => silence.abort()
  let timer = setTimeout(stop, firstEventMillis)
  document.addEventListener("visibilitychange", stop)
  const began = Date.now()
  const hasLived = () => Date.now() - began > livedMillis
  try {
    const signal = AbortSignal.any([outer, silence.signal])
    const response = await open("stream", lastId === "" ? {} : { "last-event-id": lastId }, signal)
    if (!response.ok) throw refusalOf(response.status, await response.json().catch(() => ({})))
    if (response.body === null) return false
    const decoder = new TextDecoder()
    const reader = response.body.getReader()
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read()
      if (done) return hasLived()
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n\n")
      rest = parts.pop() ?? ""
      for (const each of parts) {
        const { id, event, data } = fieldsOf(each)
        if (event === "state" && data !== undefined) received(JSON.parse(data), "stream")
        else if (live.state !== undefined) tell({ state: live.state, by: "stream" })
        lastId = id ?? lastId
      }
      clearTimeout(timer)
      timer = setTimeout(stop, silenceMillis)
    }
  } catch (error) {
    if (error instanceof Refusal) throw error
    return hasLived()
  } finally {
    clearTimeout(timer)
    document.removeEventListener("visibilitychange", stop)
    stop()
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resume) => {
    if (signal.aborted) resume()
    else signal.addEventListener("abort", () => resume(), { once: true })
  })

const sleep = (millis: number, signal: AbortSignal): Promise<void> =>
  aborted(AbortSignal.any([signal, AbortSignal.timeout(millis)]))

/** A browser has six connections to a server: tabs that nobody looks at hold none of them. */
const untilVisible = async (signal: AbortSignal): Promise<void> => {
  while (document.hidden && !signal.aborted) {
    const shown = new AbortController()
    const look = () => shown.abort()
    document.addEventListener("visibilitychange", look, { once: true })
    await aborted(AbortSignal.any([signal, shown.signal]))
    document.removeEventListener("visibilitychange", look)
  }
}

const poll = async (signal: AbortSignal): Promise<void> => {
  for (let round = 0; round < pollsUntilStream && !signal.aborted; round++) {
    try {
      const [bindings, health] = await Promise.all([get<State["bindings"]>("bindings"), get<State["health"]>("health")])
      if (!signal.aborted) received({ bindings, health }, "polling")
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (isFinal(error)) throw error
      if (!signal.aborted) tell({ ...live, by: "lost", refusal: error })
    }
    await sleep(pollMillis, signal)
  }
}

/** Asking again changes nothing: the caller has to do something. */
const isFinal = ({ status }: Refusal): boolean => status === 401 || status === 403

/** Follows the states until the signal is aborted, or the caller is refused. */
export const follow = async (signal: AbortSignal): Promise<void> => {
  lastId = ""
  while (!signal.aborted) {
    await untilVisible(signal)
    try {
      if (!(await stream(signal).catch((error: unknown) => (isRefused(error) ? Promise.reject(error) : false))))
        await poll(signal)
    } catch (error) {
      if (error instanceof Refusal && !signal.aborted) tell({ by: "lost", refusal: error })
      return
    }
  }
}

const isRefused = (error: unknown): boolean => error instanceof Refusal && isFinal(error)

/**
 * The output of the process: it is complete before the process ends, and a reader who goes away ends the command.
 */
import type { Writable } from "node:stream"
import * as Effect from "effect/Effect"

/** A stream of the process, as far as this needs it. */
type Output = Pick<Writable, "write" | "once" | "on" | "off" | "writableLength" | "destroyed">

const outputs = (): ReadonlyArray<Output> => [process.stdout, process.stderr]

/**
 * Calls back once everything that was written has reached the readers, or they are gone; at once when nothing is under way. A pipe takes 64 KiB at a time, and
 * `process.exit` would cut the rest.
 */
export const whenWritten = (then: () => void, streams: ReadonlyArray<Output> = outputs()): void => {
  const open = streams.filter((stream) => stream.writableLength > 0 && !stream.destroyed)
  let left = open.length
  if (left === 0) then()
  for (const stream of open) {
    let isDone = false
    const done = () => {
      if (isDone) return
      isDone = true
      left--
      if (left === 0) then()
    }
    // Without a listener, Node.js would throw the error of a closed pipe.
    stream.on("error", done)
    stream.write("", done)
  }
}

/** Succeeds when the reader of standard output or standard error is gone, as that of `eventbus run | head`. */
export const readerGone = (streams: ReadonlyArray<Output> = outputs()): Effect.Effect<void> =>
  Effect.callback((resume) => {
    // A pipe says EPIPE, a pair of sockets with something unread ECONNRESET, a terminal EIO. A stream that failed takes nothing more.
    const onError = () => resume(Effect.void)
    for (const stream of streams) stream.on("error", onError)
    return Effect.sync(() => {
      for (const stream of streams) stream.off("error", onError)
    })
  })

/** The address of the console of a running process. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { CommandFailed, exitCodes, refuse } from "../failures.ts"
import { read } from "./adminClient.ts"
import { adminFetch, reasonOf } from "./adminFetch.ts"

/** The process does not answer. */
class NoPage extends Data.TaggedError("NoPage")<{ readonly cause: unknown }> {}

/** How long a process may take to serve the page. */
const timeout = "10 seconds"

/** In the head of the page, whatever its version. */
const mark = "<title>Event bus</title>"

/** Looks whether the page is there. That needs no credential, and none is sent. */
export const addressOf = Effect.fnUntraced(function* (url: string): Effect.fn.Return<string, CommandFailed> {
  const { origin, prefix } = yield* read(url)
  const address = `${origin}${prefix}/console`
  const page = yield* Effect.tryPromise({
    try: async (signal) => (await adminFetch(address, { signal })).text(),
    catch: (cause) => new NoPage({ cause })
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () => Effect.fail(new NoPage({ cause: new Error(`it is silent for ${timeout}`) }))
    }),
    Effect.mapError(
      ({ cause }) =>
        new CommandFailed({ message: `${url} gives no answer: ${reasonOf(cause)}`, code: exitCodes.unavailable })
    )
  )
  return page.includes(mark) ? address : yield* refuse(`${address} is not the console of an admin API`)
})

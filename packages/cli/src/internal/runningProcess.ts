/** Commands about a running process, by its admin API. */
import * as Effect from "effect/Effect"
import { type Failed, toFailed } from "./dlt/operator.ts"
import type * as AdminClient from "./remote/adminClient.ts"

export type Asking = Effect.Success<ReturnType<typeof AdminClient.apiOf>>

/** Asks the process. The client takes as long to load as everything else, so only these commands load it. */
export const atProcess = <A>(url: string, use: (asking: Asking) => Effect.Effect<A, Failed>) =>
  Effect.flatMap(
    Effect.promise(() => import("./remote/adminClient.ts")),
    ({ apiOf }) => Effect.mapError(Effect.flatMap(apiOf(url), use), toFailed)
  )

/** A transport for tests that connect nothing. */
import { Effect } from "effect"
import type { Open } from "../src/Transport.ts"

export const noTransport: Open = () => Effect.die(new Error("this test has no connections"))

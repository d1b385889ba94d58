/**
 * The effects that the serdes of a binding need before they can decode a record, such as one for a schema that is not in the cache (`Serde.prepare`).
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type * as Serde from "../../Serde.ts"
import * as UserFunction from "../../UserFunction.ts"
import * as Decoding from "./decoding.ts"

/** Answers the preparations that a record needs, mostly none. Undefined where no serde prepares anything. */
export const make = ({
  key,
  value
}: {
  readonly key: Serde.Any
  readonly value: Serde.Any
}): ((record: ConsumerRecord) => ReadonlyArray<Effect.Effect<void>>) | undefined =>
  key.prepare === undefined && value.prepare === undefined
    ? undefined
    : (record) => [...missing(key, record, "key"), ...missing(value, record, "value")]

/**
 * The preparation that a half of the record needs. It never fails: where `prepare` throws, returns no Effect, or returns one that fails, all of which is against its
 * contract, the record counts as undecodable.
 */
const missing = (serde: Serde.Any, record: ConsumerRecord, half: Decoding.Half): ReadonlyArray<Effect.Effect<void>> => {
  const refuse = (thrown: unknown) => Decoding.refuse(serde, record, half, thrown)
  try {
    const prepared = serde.prepare?.(record[half], record)
    if (prepared === undefined) return []
    const running = Effect.exit(
      UserFunction.runBounded(
        "prepare",
        UserFunction.callEffect("prepare", () => prepared)
      )
    )
    return [Effect.map(running, (exit) => (Exit.isFailure(exit) ? refuse(Cause.squash(exit.cause)) : undefined))]
  } catch (thrown) {
    refuse(thrown)
    return []
  }
}

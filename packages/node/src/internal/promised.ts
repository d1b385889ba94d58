/** A service of the core with promises in place of effects. */
import * as Effect from "effect/Effect"
import type { Promised } from "../PlainValues.ts"

/** Runs an effect of the core for a caller that knows promises alone. */
export type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const promised = <S extends object>(service: S, run: Run): Promised<S> =>
  Object.fromEntries(
    Object.entries(service).map(([name, member]) => [name, promisedMember(member, run)])
  ) as Promised<S>

const promisedMember = (member: unknown, run: Run): unknown => {
  if (Effect.isEffect(member)) return () => run(member as Effect.Effect<unknown>)
  if (typeof member !== "function") return member
  return (...given: ReadonlyArray<unknown>) => run(member(...given))
}

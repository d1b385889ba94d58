import { readFile, rm, writeFile } from "node:fs/promises"
import { Data, Effect, Schedule } from "effect"
import { isAlive } from "./isAlive.ts"

class Locked extends Data.TaggedError("Locked") {}

const acquire = (file: string) =>
  Effect.tryPromise({
    try: () => writeFile(file, String(process.pid), { flag: "wx" }),
    catch: () => new Locked()
  }).pipe(
    Effect.catch((locked) =>
      Effect.promise(async () => {
        const owner = Number(await readFile(file, "utf8").catch(() => ""))
        // 0: the owner has created the file and not yet written its pid.
        if (owner !== 0 && !isAlive(owner)) await rm(file, { force: true })
      }).pipe(Effect.andThen(Effect.fail(locked)))
    ),
    Effect.retry(Schedule.spaced("300 millis")),
    Effect.orDie // Unreachable: a failure is retried.
  )

/** Runs `effect` while no other process on this machine holds the lock `file`. Takes over the lock of a dead process. */
export const withFileLock = <A, E, R>(file: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    acquire(file),
    () => effect,
    () => Effect.promise(() => rm(file, { force: true }))
  )

/** A connector that seldom looks at the cluster and at itself, for tests in which weeks pass. */
import { Snapshot } from "@eventbus/core"
import { Clock, Duration, Effect } from "effect"

/** How often the connector looks at health, to log it, and at the depth of dead letter topics. */
const lookMillis = [5_000, 10_000]

/**
 * Runs a test in which the looks at lag, health and depth are a day apart. 25 virtual days are 430,000 looks at health and half a minute of computing otherwise.
 * Every other sleep of 5 or 10 seconds lasts a day, too: bindings in the test set a longer `heartbeatInterval`.
 */
export const rareLooks = <A, E, R>(test: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  test.pipe(
    Effect.provideService(Snapshot.LagPollInterval, "1 day"),
    Effect.updateService(Clock.Clock, (clock) => {
      const sleep = (duration: Duration.Duration) =>
        clock.sleep(lookMillis.includes(Duration.toMillis(duration)) ? Duration.days(1) : duration)
      return new Proxy(clock, { get: (target, key) => (key === "sleep" ? sleep : Reflect.get(target, key)) })
    })
  )

import { describe, it } from "@effect/vitest"
import { TestBus } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import * as Story from "./strategyStory.ts"

const World = Layer.unwrap(Effect.map(Story.bindings(""), (bindings) => TestBus.layer(bindings))).pipe(
  Layer.provideMerge(Story.services)
)

describe("the error handling strategy of the ten consumers, as it ships", () => {
  it.effect(
    "ERR-01 ERR-03 ERR-04 ERR-05 ERR-06 ERR-07 ERR-08 ERR-09 ERR-10 ERR-11 each consumer retries as its file says, and its poison is isolated",
    () => Story.tell("", 0).pipe(Effect.provide(World))
  )
})

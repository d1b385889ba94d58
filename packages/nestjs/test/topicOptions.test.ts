import { on, retry } from "@eventbus/node"
import { expect, it } from "vitest"
import * as TopicOptions from "../src/internal/topicOptions.ts"

it("RCH-07 the options of a topic win setting by setting within a section, and lose none of the options of all topics", () => {
  const tiers = ["10s", "1m"] as const
  const common = { retry: { consumer: "separate" }, maxInFlight: 4, deadLetter: { topicSuffix: ".dead" } } as const
  expect(TopicOptions.of(common, { retry: { tiers }, maxInFlight: 8 })).toEqual({
    ...{ retry: { consumer: "separate", tiers }, maxInFlight: 8, deadLetter: { topicSuffix: ".dead" } }
  })
  const onError = [on(Error, retry)]
  expect(TopicOptions.of({ onError: [], circuitBreaker: {} }, { onError })).toEqual({ onError, circuitBreaker: {} })
  expect(TopicOptions.of(undefined, { retry: { tiers } })).toEqual({ retry: { tiers } })
  expect(TopicOptions.of(common, undefined)).toEqual(common)
})

import { MemoryBroker } from "@eventbus/testkit"
import * as BrokerContract from "@eventbus/testkit/BrokerContract"

BrokerContract.suite("EXT-03 contract on the in-memory broker", { layer: MemoryBroker.layer(), clock: "virtual" })

BrokerContract.suite("contract on the in-memory broker, eager and with latency", {
  layer: MemoryBroker.layer({
    assignment: "eager",
    latency: {
      join: "40 millis",
      heartbeat: "5 millis",
      fetch: "10 millis",
      commit: "20 millis",
      produce: "15 millis",
      sendOffsets: "10 millis",
      endTransaction: "20 millis",
      admin: "10 millis"
    }
  }),
  clock: "virtual",
  capabilities: { staying: "revoked" }
})

import { MemoryBroker } from "@eventbus/testkit"
import * as BrokerContract from "@eventbus/testkit/BrokerContract"

BrokerContract.suite("contract on the in-memory broker", { layer: MemoryBroker.layer(), clock: "test-clock" })

/** The smallest program on bare kafkajs. `start.ts` builds it and starts it. */
import { Kafka, logLevel } from "kafkajs"

const { BROKERS = "", TOPIC = "", GROUP = "" } = process.env

const consumer = new Kafka({ brokers: BROKERS.split(","), logLevel: logLevel.ERROR }).consumer({ groupId: GROUP })
process.once("SIGTERM", () => void consumer.disconnect().then(() => process.exit()))

await consumer.connect()
await consumer.subscribe({ topics: [TOPIC], fromBeginning: true })
await consumer.run({ eachMessage: async () => void process.stdout.write("handled\n") })

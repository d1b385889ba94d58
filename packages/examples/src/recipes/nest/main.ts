/** The start of a Nest application with HTTP and Kafka. */
import { EventBusService } from "@eventbus/nestjs"
import { EventBusTransport } from "@eventbus/nestjs/transport"
import { NestFactory } from "@nestjs/core"
import { admin, group, listens, port } from "../bus.ts"
import { AppModule } from "./app.module.ts"

const app = await NestFactory.create(AppModule, { logger: ["error", "warn", "log"] })
// Behind the probes of Terminus it answers /eventbus and /metrics.
app.use(["/eventbus", "/metrics"], admin.nodeListener)
app.connectMicroservice({ strategy: new EventBusTransport(app.get(EventBusService), { groupId: group }) })
app.enableShutdownHooks(["SIGTERM"], { useProcessExit: true })
await app.startAllMicroservices()
await app.listen(port)
listens(Number(new URL(await app.getUrl()).port))

/** The application: `FAILS` makes a provider fail in `onModuleInit`, as a database that is away does. */
import { EventBusModule } from "@eventbus/nestjs"
import { Module } from "@nestjs/common"
import { TerminusModule } from "@nestjs/terminus"
import { admin, kafka } from "../bus.ts"
import { Gateway } from "./gateway.ts"
import { HealthController } from "./health.controller.ts"
import { OrdersController } from "./orders.controller.ts"

const database = {
  provide: "database",
  useFactory: () => ({
    onModuleInit: () => (process.env["FAILS"] === undefined ? undefined : Promise.reject(new Error("no database")))
  })
}

@Module({
  imports: [EventBusModule.forRoot({ kafka, extension: admin.extension }), TerminusModule.forRoot({ logger: false })],
  controllers: [OrdersController, HealthController],
  providers: [Gateway, database]
})
export class AppModule {}

// The engine's gRPC services. Thread-safe; the engine is borrowed and must outlive them.
#pragma once

#include <memory>
#include <string>

namespace grpc {
class Service;
}  // namespace grpc

namespace medley::worker {

class Engine;

std::unique_ptr<grpc::Service> MakeCoordinatorService(Engine& engine, std::string token);
std::unique_ptr<grpc::Service> MakeMemberService(Engine& engine, std::string token);

}  // namespace medley::worker

// Calls every method of every service of a proto file without the job's token and with a wrong one.
#pragma once

#include <string>

namespace google::protobuf {
class FileDescriptor;
}

namespace medley::worker {

// `methods` is the expected number of methods, so that a file without services makes the test fail.
void ExpectEveryMethodNeedsTheToken(const std::string& address, const google::protobuf::FileDescriptor& file,
                                    int methods);

// Calls `method` ("/package.Service/Method") with a wrong token and sends no request. A server that reads the request
// before it checks the token does not answer.
void ExpectRefusedBeforeTheRequest(const std::string& address, const std::string& method);

}  // namespace medley::worker

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

}  // namespace medley::worker

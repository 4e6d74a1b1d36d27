# cmake -DFILES=LIST -DNAME=NAME -DOUTPUT=FILE -P HashFiles.cmake: a header that defines NAME as the first 16 digits of the SHA-256 of
# the files' contents. Where they are does not count.
set(hashes "")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#define ${NAME} \"${hash}\"\n")
